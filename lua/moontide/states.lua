--- Moves of the lifecycle state, and who in Lua hears of them. The state itself is the core's.

local core = require "moontide.core"
local record = require "moontide.pipeline.record"

local M = {
  --- In their order.
  NAMES = { "starting", "ready", "draining", "stopped" },
  --- When the state was last moved, on the clock's scale; nil: never.
  ---@type number|nil
  moved_at = nil,
}

local observers = {}

--- The present state.
---@return "starting"|"ready"|"draining"|"stopped"
function M.get()
  return core.state.get()
end

-- How long an observer may run, in seconds.
local LIMIT = 1

-- An observer is called in the middle of a move, and must not be able to hold it up: in a coroutine
-- of its own it cannot await, os.exit ends only the observer, and one that spins is interrupted.
local function tell(observer, from, to, reason)
  local co = core.coroutine.create(observer)
  local ok, err = core.coroutine.resume(co, core.clock.now() + LIMIT, from, to, reason)
  if ok or require("moontide.exit").is_exit(err) then return end
  core.log.write(3, "lifecycle", "a state observer failed: " .. record.text(err), "from", from,
    "to", to, "traceback", record.stack(debug.traceback(co)))
end

--- Moves on. A move to where it is already is none; a move back is ignored with a WARN.
---@param to string
---@param reason any what observers and the log are told
---@return boolean moved
function M.move(to, reason)
  local from = core.state.get()
  if from == to then return false end
  local moved, message = core.state.move(to)
  if not moved then
    core.log.write(2, "lifecycle", "state not changed: " .. tostring(message or "illegal move"),
      "from", from, "to", to)
    return false
  end
  M.moved_at = core.clock.now()
  core.log.write(1, "lifecycle", "lifecycle.state.changed", "from", from, "to", to,
    "reason", reason and tostring(reason))
  local copy = table.move(observers, 1, #observers, 1, {})
  for _, observer in ipairs(copy) do tell(observer.fn, from, to, reason) end
  return true
end

--- Calls `fn(from, to, reason)` after each move. It cannot await (it may spawn). A failing observer
--- is logged and disturbs nobody.
---@param fn fun(from: string, to: string, reason: any)
---@return fun() unsubscribe
function M.on_state(fn)
  if type(fn) ~= "function" then
    local message = "tide.on_state: a function is wanted, not a %s"
    require("moontide.site").fail(message:format(type(fn)))
  end
  local observer = { fn = fn }
  observers[#observers + 1] = observer
  return function()
    for i, other in ipairs(observers) do
      if other == observer then return table.remove(observers, i) and nil end
    end
  end
end

return M
