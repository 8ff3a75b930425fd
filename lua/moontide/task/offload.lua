--- offload: runs a function on a thread of libuv's pool, in a Lua state of its own.
local await_point = require("moontide.core").task.await_point
local waiter = require "moontide.task.waiter"

local M = {}

local PLAIN = { ["nil"] = true, boolean = true, number = true, string = true }

--- Runs in the other state: no upvalue of this file is there.
local function work(code, name, ...)
  local fn, message = load(code, name, "b")
  if not fn then
    return false, message
  end
  local function judge(ok, ...)
    for i = 1, ok and select("#", ...) or 0 do
      local value = select(i, ...)
      local kind = type(value)
      if value ~= nil and kind ~= "string" and kind ~= "number" and kind ~= "boolean" then
        return false, ("offload: result %d is a %s; only strings, numbers, booleans and nil come "
          .. "back from another thread"):format(i, kind)
      end
    end
    return ok, ...
  end
  return judge(xpcall(fn, function(err)
    return debug.traceback(tostring(err), 2)
  end, ...))
end

local function check(fn, ...)
  for i = 1, 255 do
    local name = debug.getupvalue(fn, i)
    if not name then
      break
    elseif name ~= "_ENV" then
      error(("offload: the function uses the local %q of its surroundings, which does not exist "
        .. "in the other thread: pass it as an argument"):format(name), 3)
    end
  end
  for i = 1, select("#", ...) do
    local kind = type((select(i, ...)))
    if not PLAIN[kind] then
      error(("offload: argument %d is a %s; only strings, numbers, booleans and nil can go to "
        .. "another thread"):format(i, kind), 3)
    end
  end
end

--- Runs fn(...) on another thread and waits for it. fn sees a fresh Lua state: its own locals and
--- arguments, the standard library, and what it requires itself.
---@async
---@param fn fun(...): ...
---@param ... string|number|boolean|nil
---@return string|number|boolean|nil ...
function M.offload(fn, ...)
  await_point()
  if type(fn) ~= "function" then
    error(("offload: needs a function, got %s"):format(type(fn)), 2)
  end
  check(fn, ...)
  local dumped, code = pcall(string.dump, fn)
  if not dumped then
    error("offload: needs a function written in Lua", 2)
  end
  local wait = waiter.new("offload")
  local job = require("luv").new_work(work, function(ok, ...)
    if ok then
      wait:wake(...)
    else
      wait:fail(... or "offload: the work failed")
    end
  end)
  job:queue(code, debug.getinfo(fn, "S").source, ...)
  return wait:wait()
end

return M
