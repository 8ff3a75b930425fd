--- The run queue and the running task: the bottom of the task runtime.
---
--- Whatever makes a task runnable (a wake, a timer, a cancellation, a spawn) only appends it here;
--- the pump in scheduler.lua takes it out. So a task is never resumed from inside another, the C
--- stack stays flat, and a wake is safe from anywhere.
---
--- Where a task stands is one field, `at`: one of the constants below, or the table that it waits
--- for. A waiting task belongs to exactly one such table, so every wake begins with `t.at == self`,
--- and a wake that comes late, twice, or after a cancellation finds something else there.
local core = require "moontide.core"

local running, suspend = coroutine.running, core.coroutine.suspend

local M = {
  NEW = "new",           -- queued, not started
  READY = "ready",       -- queued, to go on
  RAISE = "raise",       -- queued, to go on with its cancellation
  RUNNING = "running",
  FINISHED = "finished", -- its function has returned
  DONE = "done",         -- it has ended
  --- Waits for the clock, until `value`.
  SLEEP = { what = "sleep" },
  --- Waits for the others that are ready.
  TURN = { what = "its turn" },
  --- What a suspension hands to the pump first, so that a stray coroutine.yield is told apart.
  AWAIT = {},
  --- As AWAIT, for a task that ends where it stands.
  LEAVE = {},

  ---@type moontide.Task|nil the task whose code runs right now
  current = nil,
  --- The clock as the pump last read it: to a few task slices.
  now = core.clock.now(),
  --- Tasks started and not ended.
  live = 0,
}

local READY, AWAIT, LEAVE = M.READY, M.AWAIT, M.LEAVE

local incoming, spare = {}, {}
local count = 0

--- Suspended tasks that may need an entry in the clock; alarm.lua empties this after the pump, so
--- that a task which is woken in the same turn never costs one.
local unarmed, unarmed_count = {}, 0

--- Appends a suspended task to the run queue.
---@param t moontide.Task
function M.ready(t)
  t.at = READY
  count = count + 1
  incoming[count] = t
end

--- Appends a task as it stands (NEW, RAISE).
---@param t moontide.Task
function M.append(t)
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
  local n = unarmed_count
  unarmed_count = 0
  for i = 1, n do
    fn(unarmed[i])
    unarmed[i] = false
  end
end

--- The running task, if the caller may await: in a task, in the task's own coroutine, and not
--- being cancelled. Raises otherwise.
---@return moontide.Task
function M.await_point()
  local t = M.current
  if not t then
    error("cannot await outside a task: run it with tide.spawn(function() ... end)", 3)
  elseif running() ~= t.body then
    error("cannot await inside a plain coroutine that a task resumed: await in the task itself, "
      .. "or make the coroutine a task with tide.spawn", 3)
  elseif t.cancelled and not t:is_shielded() then
    t.told = true
    error(t.cancelled, 0)
  end
  return t
end

--- Suspends the running task until something makes it ready; raises its cancellation if that is
--- what woke it. The caller has passed await_point. The task waits from the moment the pump has it
--- back: where a yield cannot cross, this raises and nothing has changed.
---@param source table what it waits for: has `what`, or is a wait list
function M.suspend(source)
  if suspend(AWAIT, source) then
    local t = M.current
    t.told = true
    error(t.cancelled, 0)
  end
end

--- Ends the running task where it stands (os.exit): its <close> variables run, nothing after it
--- does, and no pcall of its own hears of it. Only in the task's own coroutine.
---@param reason string
function M.leave(reason)
  suspend(LEAVE, reason)
end

return M
