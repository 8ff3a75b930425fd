--- The run queue and the running task: the bottom of the task runtime.
---
--- Whatever makes a task runnable (a wake, a timer, a cancellation, a spawn) only appends it here;
--- the pump in scheduler.lua takes it out. So a task is never resumed from inside another, the C
--- stack stays flat, and a wake is safe from anywhere.
local core = require "moontide.core"

local running, suspend = coroutine.running, core.coroutine.suspend

local M = {
  ---@type moontide.Task|nil the task whose code runs right now
  current = nil,
  --- The clock as the pump last read it: to a few task slices.
  now = core.clock.now(),
  --- Tasks started and not ended.
  live = 0,
  --- What cancel.deliver leaves as a task's source: raise its cancellation at the await point.
  RAISE = "cancelled",
}

local incoming, spare = {}, {}
local count = 0

--- Suspended tasks that may need an entry in the clock; alarm.lua empties this after the pump, so
--- that a task which is woken in the same turn never costs one.
local unarmed, unarmed_count = {}, 0

--- Appends a task to the run queue.
---@param t moontide.Task
function M.ready(t)
  t.state = "ready"
  count = count + 1
  incoming[count] = t
end

--- What has been queued since the last call, in order; the two lists take turns.
---@param done moontide.Task[] the list taken before, now empty
---@return moontide.Task[] list, integer count
function M.take(done)
  local list, n = incoming, count
  incoming, count = spare, 0
  spare = done
  return list, n
end

---@return integer
function M.length()
  return count
end

--- Remembers that a suspended task may need a clock entry.
---@param t moontide.Task
function M.defer_alarm(t)
  unarmed_count = unarmed_count + 1
  unarmed[unarmed_count] = t
end

--- Calls fn for each task remembered so.
---@param fn fun(t: moontide.Task)
function M.drain_unarmed(fn)
  for i = 1, unarmed_count do
    fn(unarmed[i])
    unarmed[i] = false
  end
  if unarmed_count > 4096 then
    unarmed = {}
  end
  unarmed_count = 0
end

--- The running task, if the caller may await: in a task, in the task's own coroutine, and not
--- being cancelled. Raises otherwise.
---@return moontide.Task
function M.await_point()
  local t = M.current
  if not t then
    error("cannot await outside a task: run it with tide.spawn(function() ... end)", 3)
  end
  if running() ~= t.body then
    error("cannot await inside a plain coroutine that a task resumed: await in the task itself, "
      .. "or make the coroutine a task with tide.spawn", 3)
  end
  if t.cancelled and not t:is_shielded() then
    t.told = true
    error(t.cancelled, 0)
  end
  return t
end

--- Suspends the running task until something calls ready(t); raises its cancellation if that is
--- what woke it. The caller has passed await_point.
---@param t moontide.Task
---@param source any what it waits for; see waitlist.lua
function M.suspend(t, source)
  t.state, t.source = "waiting", source
  if not t.alarm and (t.deadline or t.cancelled) then
    unarmed_count = unarmed_count + 1
    unarmed[unarmed_count] = t
  end
  suspend()
  source = t.source
  t.source = false
  if source == M.RAISE then
    t.told = true
    error(t.cancelled, 0)
  end
end

--- Lets everything else that is ready run first.
---@param t moontide.Task
function M.reschedule(t)
  t.source = "its turn"
  M.ready(t)
  suspend()
  t.source = false
end

return M
