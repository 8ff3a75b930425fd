--- Clock entries of tasks: at most one for a suspended task, made when the run queue has been
--- worked off, kept over later awaits. Also plain timers for the library's other rooms.
local core = require "moontide.core"
local queue = require "moontide.task.queue"

local add, withdraw = core.clock.add, core.clock.cancel

local M = {
  ---@type fun(t: moontide.Task, now: number) set by late.lua
  on_task = nil,
  --- The core counts whole nanoseconds, so an entry may be due a little before the time that it
  --- was made for; what is due within this is due.
  slack = 1e-6,
  --- Seconds between the cancellation of a late task and its being closed.
  grace = 1,
}

---@type table<integer, moontide.Task|fun(now: number)>
local entries = {}

--- When a cancelled task is closed: the grace after its deadline.
---@param t moontide.Task
---@return number|nil
function M.kill_at(t)
  return t.grace_end or t.deadline and t.deadline + M.grace or nil
end

--- When the suspended task must be looked at again, or nil. A deadline that the owner has as well
--- is watched by the owner alone, whose expiry reaches its children.
---@param t moontide.Task
---@return number|nil
function M.next_at(t)
  local at
  local cancelled = t.cancelled
  if not cancelled then
    local deadline, scope = t.deadline, t.scope
    if deadline and not (scope.owner and scope.deadline == deadline) then
      at = deadline
    end
  else
    local shield = t.shield
    at = shield and shield.till
    local kill_at = M.kill_at(t)
    if kill_at and (not at or kill_at < at) then
      at = kill_at
    end
  end
  if t.at == queue.SLEEP and (not at or t.value < at) then
    at = t.value
  end
  return at
end

local function arm(t)
  if type(t.at) == "table" and not t.alarm then
    local at = M.next_at(t)
    if at then
      local id = add(at)
      t.alarm = id
      entries[id] = t
    end
  end
end

--- Gives every suspended task that needs one its clock entry.
function M.arm_all()
  queue.drain_unarmed(arm)
end

--- Withdraws the task's entry.
---@param t moontide.Task
function M.clear(t)
  local id = t.alarm
  if id then
    t.alarm = false
    entries[id] = nil
    withdraw(id)
  end
end

--- What the task waits for has changed: its entry is made anew.
---@param t moontide.Task
function M.renew(t)
  M.clear(t)
  queue.defer_alarm(t)
end

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

--- The clock says that an entry is due.
---@param id integer
function M.due(id)
  local entry = entries[id]
  entries[id] = nil
  if not entry then
    return
  end
  local now = core.clock.now() + M.slack
  queue.now = now
  if type(entry) == "function" then
    entry(now)
  else
    entry.alarm = false
    M.on_task(entry, now)
  end
end

return M
