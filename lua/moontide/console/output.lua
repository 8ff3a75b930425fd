--- What an evaluation prints goes to its session: `print` and `io.write`, of its own task and of
--- those that it spawned. What other tasks print goes where it always went.
--
-- Both are replaced while an evaluation lives, and only then. Code that has made them locals of its
-- own goes on printing to stdout; so does `io.stdout:write`.

local running = require "moontide.console.running"

local M = {}

--- How much stands in one message; a line of the protocol has its limit.
local PIECE = 64 * 1024

local print_, write_ -- what they were; nil: not replaced
local routed_print, routed_write
local using = 0

local function send(evaluation, text)
  for at = 1, #text, PIECE do
    evaluation.session:out(evaluation.id, text:sub(at, at + PIECE - 1))
  end
end

function routed_print(...)
  local evaluation = running.current()
  if not evaluation then return (print_ or print)(...) end
  local words = table.pack(...)
  for i = 1, words.n do words[i] = tostring(words[i]) end
  send(evaluation, table.concat(words, "\t") .. "\n")
end

-- As io.write: numbers are fine, all else is refused in its own words.
local function is_writable(...)
  for i = 1, select("#", ...) do
    local kind = type((select(i, ...)))
    if kind ~= "string" and kind ~= "number" then return false end
  end
  return true
end

function routed_write(...)
  local evaluation = running.current()
  if not evaluation or io.output() ~= io.stdout or not is_writable(...) then
    return (write_ or io.stdout.write)(...)
  end
  send(evaluation, table.concat { ... })
  return io.output()
end

--- An evaluation begins.
function M.hold()
  using = using + 1
  if using > 1 then return end
  -- Ours, when somebody has kept it and put it back: it would call itself.
  if not rawequal(print, routed_print) then print_ = print end
  if not rawequal(io.write, routed_write) then write_ = io.write end
  _G.print, io.write = routed_print, routed_write
end

--- It has ended. What the application has put in their place meanwhile stays.
function M.release()
  using = using - 1
  if using > 0 then return end
  if rawequal(_G.print, routed_print) then _G.print = print_ end
  if rawequal(io.write, routed_write) then io.write = write_ end
end

return M
