--- Tracebacks that cross awaits: the stack of a suspended task, then of what it awaits.
local queue = require "moontide.task.queue"

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
  return table.concat(lines, "\n")
end

--- The stack of the running code, from the caller's caller on.
---@return string
function M.here()
  return M.prune(debug.traceback("", 3))
end

local function stack_of(t)
  if t == queue.current then
    return M.prune(debug.traceback("", 2))
  elseif type(t.body) == "thread" then
    return M.prune(debug.traceback(t.body))
  elseif t.at == queue.NEW then
    return "\t(not started)"
  end
  return "\t(its function has returned)"
end

--- The function that the task in this coroutine was made of: the outermost that is not this
--- library's.
---@param co thread
---@return table|nil info of debug.getinfo
function M.base(co)
  local level, found = 0, nil
  while true do
    local info = debug.getinfo(co, level, "S")
    if not info then
      return found
    elseif info.what ~= "C" and not info.source:find("moontide/task/scheduler", 1, true) then
      found = info
    end
    level = level + 1
  end
end

local function follow(t, out, depth)
  out[#out + 1] = stack_of(t)
  local source = t.at
  local of = type(source) == "table" and source.of or source
  if depth >= DEPTH or type(of) ~= "table" then
    return
  elseif of.scope then
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
