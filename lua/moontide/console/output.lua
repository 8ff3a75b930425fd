--- What an evaluation prints goes to its session: `print` and `io.write`, of its own task and of
--- those that it spawned. What other tasks print goes where it always went.
--
-- Both are replaced while an evaluation lives, and only then. Code that has made them locals of its
-- own goes on printing to stdout; so does `io.stdout:write`.

local running = require "moontide.console.running"

local M = {}

local using = 0
---@type { print: function, write: function, original_print: function, original_write: function }
local routes

local function send(evaluation, text)
  evaluation.session:out(evaluation.id, text)
end

local function route_print(original)
  return function(...)
    local evaluation = running.current()
    if not evaluation then return original(...) end
    local words = table.pack(...)
    for i = 1, words.n do words[i] = tostring(words[i]) end
    send(evaluation, table.concat(words, "\t") .. "\n")
  end
end

-- As io.write: numbers are fine, all else is refused, in its words.
local function check_writable(...)
  for i = 1, select("#", ...) do
    local kind = type((select(i, ...)))
    if kind ~= "string" and kind ~= "number" then
      error(("bad argument #%d to 'write' (string expected, got %s)"):format(i, kind), 3)
    end
  end
end

local function route_write(original)
  return function(...)
    local evaluation = running.current()
    if not evaluation or io.output() ~= io.stdout then return original(...) end
    check_writable(...)
    send(evaluation, table.concat { ... })
    return io.stdout
  end
end

--- An evaluation begins.
function M.hold()
  using = using + 1
  if using > 1 then return end
  -- New ones each time: a function of the script's may have kept the last ones, to call them.
  routes = {
    print = route_print(_G.print), write = route_write(io.write),
    original_print = _G.print, original_write = io.write,
  }
  _G.print, io.write = routes.print, routes.write
end

--- It has ended. What the application has put in their place meanwhile stays.
function M.release()
  using = using - 1
  if using > 0 then return end
  if rawequal(_G.print, routes.print) then _G.print = routes.original_print end
  if rawequal(io.write, routes.write) then io.write = routes.original_write end
end

return M
