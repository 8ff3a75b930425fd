--- Tracebacks that cross awaits: the stack of a suspended task, then of what it awaits.
local current = require("moontide.core").task.current

local M = {}

--- How many tasks a traceback follows.
local DEPTH = 8
--- How many children of a scope it lists.
local WIDTH = 3

local function own_frame(line)
  return line:find("moontide/task/", 1, true) or line:find("moontide/task.lua", 1, true)
    or line:find("in function 'coroutine.yield'", 1, true)
    or line:find("^%s*%[C%]: in %a+ 'suspend'")
    or line:find("[C]: in upvalue '?'", 1, true) -- the same in the binary, which has no names
    or line:find("in function 'xpcall'", 1, true)
    or line:find("in function 'moontide.", 1, true)
end

--- The lines of a debug.traceback without its head and without this library's frames.
---@param text string
---@return string
function M.prune(text)
  local lines = {}
  for line in text:gmatch("[^\n]+") do
    if line ~= "stack traceback:" and not own_frame(line) then
      lines[#lines + 1] = line
    end
  end
  if #lines > 0 and lines[#lines]:find "^%s*%[C%]: in %?$" then
    lines[#lines] = nil -- the base of the task
  end
  return table.concat(lines, "\n")
end

--- The stack of code that raised, in the message handler: from the caller's caller on, and that is
--- the core's.
---@return string
function M.here()
  return M.prune(debug.traceback("", 4))
end

local function stack_of(t)
  if t == current() then
    return M.prune(debug.traceback("", 2))
  elseif type(t.body) == "thread" then
    return M.prune(debug.traceback(t.body))
  elseif t.at == "new" then
    return "\t(not started)"
  end
  return "\t(its function has returned)"
end

local function follow(t, out, depth)
  out[#out + 1] = stack_of(t)
  local source = t.at
  if depth >= DEPTH or type(source) == "string" then
    return
  end
  local of = source.of or source
  if of.scope then
    out[#out + 1] = ("awaiting task %s:"):format(of.name)
    follow(of, out, depth + 1)
  elseif of.tasks then
    local shown = 0
    for child in of:tasks() do
      shown = shown + 1
      if shown > WIDTH then
        out[#out + 1] = ("and %d more"):format(of.n - WIDTH)
        break
      end
      out[#out + 1] = ("awaiting task %s of its scope:"):format(child.name)
      follow(child, out, depth + 1)
    end
  end
end

--- Where the task is now, through the tasks it awaits.
---@param t moontide.Task
---@return string
function M.of(t)
  local out = {}
  follow(t, out, 1)
  return table.concat(out, "\n")
end

return M
