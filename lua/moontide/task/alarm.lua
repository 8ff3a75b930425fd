--- Times that matter to cancelled tasks, and plain timers for the library's other rooms. The clock
--- entries of tasks themselves are the core's.
local core = require "moontide.core"

local add, withdraw = core.clock.add, core.clock.cancel

local M = {
  --- The core counts whole nanoseconds, so an entry may be due a little before the time that it
  --- was made for; what is due within this is due.
  slack = 1e-6,
  --- Seconds between the cancellation of a late task and its being closed.
  grace = 1,
  --- No grace lasts beyond this time: a pipeline that must end by then sets it.
  ---@type number|nil
  grace_limit = nil,
}

---@type table<integer, fun(now: number)>
local entries = {}

--- When a cancelled task is closed: the grace after its deadline.
---@param t moontide.Task
---@return number|nil
local function kill_at(t)
  local deadline, limit = t.deadline, M.grace_limit
  local at = t.grace_end or deadline and deadline + M.grace or nil
  return at and limit and limit < at and limit or at
end
M.kill_at = kill_at

--- When a cancelled task that is suspended must be looked at again, or nil.
core.task.policy("next_at", function(t)
  local shield, kill = t.shield, kill_at(t)
  local at = shield and shield.till
  return kill and (not at or kill < at) and kill or at
end)

--- Until when a cancelled task may run without being interrupted.
core.task.policy("slice_end", function(t, now)
  local kill = kill_at(t)
  if kill then
    return kill > now + 0.1 and kill or now + 0.1
  end
  return now + M.grace
end)

--- Calls fn(now) once at that time, in scheduler context: it must not await. For the library only.
---@param at number seconds on the clock's scale
---@param fn fun(now: number)
---@return integer id
function M.timer(at, fn)
  local id = add(at)
  entries[id] = fn
  return id
end

--- Withdraws a timer that has not fired; afterwards its number may be another's.
---@param id integer
function M.cancel_timer(id)
  if entries[id] then
    entries[id] = nil
    withdraw(id)
  end
end

--- How many timers are set.
---@return integer
function M.count()
  local count = 0
  for _ in next, entries do count = count + 1 end
  return count
end

core.clock.on_due(function(id)
  local fn = entries[id]
  entries[id] = nil
  if fn then
    fn(core.clock.now() + M.slack)
  end
end)

return M
