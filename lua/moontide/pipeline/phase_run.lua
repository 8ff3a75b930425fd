--- Runs the tasks of one phase and waits for the last of them.
--
-- A phase has no timer: its end is the deadline of each of its tasks. Who is late is cancelled by
-- the task library, so the phase is over when its last task is, at most a grace after its time.

local core = require "moontide.core"
local failure = require "moontide.lazy" "moontide.pipeline.failure"
local record = require "moontide.pipeline.phase_record"
local task = require "moontide.task"
local task_run = require "moontide.pipeline.task_run"

local now = core.clock.now

local M = {}

---@class moontide.PhaseRun
---@field run moontide.Run
---@field node table the phase in the graph
---@field phase moontide.PhaseTasks
---@field deadline number|nil when the phase ends, for its tasks
---@field limit string|nil the words for that deadline
---@field asked string|nil somebody has asked to skip the rest of it: in which words
---@field waits table<string, moontide.Entry[]>|nil who starts when that task has ended
local PhaseRun = {}
PhaseRun.__index = PhaseRun

local function finite(seconds)
  return seconds and seconds < math.huge and seconds or nil
end

-- The earlier of the phase's own end and the total's, and which of them it is.
local function limits(run, node, from)
  local total_end, total_text = run:limit_for(node)
  local own = finite(node.effective or node.timeout)
  if own and (not total_end or from + own < total_end) then
    return from + own, "the timeout of phase " .. node.name
  end
  return total_end, total_text
end

--- With a retry policy the phase's timeout bounds each attempt, and give_up_after all of them.
function PhaseRun:attempt_limit(started)
  local at, text = limits(self.run, self.node, started)
  local last = self.retry_end
  if last and (not at or last < at) then return last, "what was left of give_up_after" end
  return at, text
end

-- ---- which task may start -----------------------------------------------------------------------

local function skipped_by(run, entry)
  local reason = run.reason
  if not reason then return nil end
  for _, of in ipairs(reason:chain()) do
    for _, kind in ipairs(entry.skip_on) do
      if kind == of then return kind end
    end
  end
end

local function skip(self, entry, why)
  entry.state, entry.outcome, entry.ended_at = "done", "skipped", now()
  entry.error = why
  record.task_skipped(self, entry, why)
end

-- Collects what this run of the phase is about: an array of entries, in the order of their turns.
local function collect(self)
  local list, skipped = self.phase:list(), 0
  local asked = self.phase.asked_tasks
  for i = #list, 1, -1 do
    local entry = list[i]
    local kind = entry.skip_on and skipped_by(self.run, entry)
    local why = kind and "reason " .. kind or asked and asked[entry]
    if why then
      skip(self, table.remove(list, i), why)
      skipped = skipped + 1
    end
  end
  if self.node.mode == "lifo" then
    for i = 1, #list // 2 do
      list[i], list[#list + 1 - i] = list[#list + 1 - i], list[i]
    end
  end
  self.list, self.skipped = list, skipped
  self.pending = #list
end

local function wait_for(self, entry, name)
  self.waits = self.waits or {}
  local waiters = self.waits[name]
  if not waiters then
    waiters = {}
    self.waits[name] = waiters
  end
  waiters[#waiters + 1] = entry
  entry.waits_for = name
end

-- Whether `entry.after` names something that is still to end.
local function held_back(self, entry)
  local before = self.phase.by_name[entry.after]
  return before ~= nil and before ~= entry and before.state ~= "done"
end

local function start_or_skip(self, entry)
  if entry.state ~= "waiting" then return end
  local stopped = self.cancelled or self.asked
  if stopped then return self:drop(entry, stopped) end
  local at = now()
  local over = self.deadline and not self.per_attempt and at >= self.deadline
  if over then return self:drop(entry, "no time left: " .. self.limit) end
  task_run.start(self, entry, at)
end

-- Starts the next of a "lifo" or "fifo" phase.
local function start_next(self)
  while self.next <= #self.list do
    local entry = self.list[self.next]
    self.next = self.next + 1
    if entry.state == "waiting" then return start_or_skip(self, entry) end
  end
end

-- Kilobytes that a task takes until it ends, most of it its coroutine.
local TASK_SIZE = 1.5

-- All at once: they begin at the same time, so the clock is read once. What they take is no
-- garbage: a collection while they start would only walk over it, so it comes that much later (a
-- negative step is a credit).
local function start_all(self)
  local list, at = self.list, now()
  if self.quiet then collectgarbage("step", -math.ceil(#list * TASK_SIZE)) end
  if self.deadline and not self.per_attempt and at >= self.deadline then
    for i = 1, #list do start_or_skip(self, list[i]) end
    return
  end
  for i = 1, #list do
    local entry = list[i]
    if entry.after and held_back(self, entry) then
      wait_for(self, entry, entry.after)
    else
      task_run.start(self, entry, at)
    end
  end
end

-- ---- ends ---------------------------------------------------------------------------------------

local function count_down(self)
  self.pending = self.pending - 1
  if self.pending == 0 then self.waiter:wake() end
end

-- Starts, or drops, those who waited for an entry.
local function release_waiters(self, entry)
  local waiters = self.waits and self.waits[entry.name]
  if not waiters then return end
  self.waits[entry.name] = nil
  local failed = self.run.kind == "startup" and entry.outcome ~= "ok" and entry.outcome ~= "skipped"
  for _, waiter in ipairs(waiters) do
    waiter.waits_for = nil
    if failed and waiter.state == "waiting" then
      self:drop(waiter, entry.name .. " failed")
    else
      start_or_skip(self, waiter)
    end
  end
end

-- After an entry has ended in any way: the next in line, or who waited for it.
local function release(self, entry)
  if self.sequential then return start_next(self) end
  release_waiters(self, entry)
end

--- Ends an entry that never started.
function PhaseRun:drop(entry, why)
  skip(self, entry, why)
  self.skipped = self.skipped + 1
  release(self, entry)
  count_down(self)
end

--- A task was withdrawn while the phase runs: it had not had its turn.
function PhaseRun:withdrawn(entry)
  release_waiters(self, entry)
  count_down(self)
end

--- Somebody has asked to skip a task that had not had its turn.
function PhaseRun:skip_waiting(entry, why)
  skip(self, entry, why)
  self.skipped = self.skipped + 1
  self:withdrawn(entry)
end

--- An attempt has failed and another follows.
function PhaseRun:attempt_failed(entry, t, delay)
  failure.attempt_failed(self, entry, t, delay)
end

local function tolerated(self)
  local node, cut = self.node, self.run.cut
  -- Told to end by a shutdown: how a task then ends is no failure of the run.
  if self.cancelled and cut and cut.kind ~= "abort" then return true end
  if self.run.kind == "startup" then return node.on_fail == "warn" end
  return node.recover ~= false
end

-- The first failure that the phase does not tolerate stops its siblings and the run; a phase that
-- is to find all faults lets its siblings go on and stops the run at its end.
local function failed(self, entry)
  local cut = self.run.cut or self.cancelled
  if cut and entry.outcome == "cancelled" then return end
  self.failures = self.failures + 1
  local fine = tolerated(self)
  local all = self.phase.collect_all
  failure.task_failed(self, entry, not (fine or all or self.run.failure))
  if fine then return end
  self.fatal = self.fatal or entry
  if all then
    self.faults = self.faults or {}
    self.faults[#self.faults + 1] = entry
    return
  end
  self.run:failed(self, entry)
  self:cancel(entry.name .. " failed")
end

--- A started entry has ended.
function PhaseRun:ended(entry)
  if entry.outcome == "ok" then
    if not self.quiet then record.task_ended(self, entry) end
  elseif entry.outcome == "skipped" then -- while it ran
    self.skipped = self.skipped + 1
    record.task_skipped(self, entry, entry.error)
    record.tell_task(self, entry)
  else
    failed(self, entry)
  end
  if self.sequential or self.waits then release(self, entry) end
  count_down(self)
end

--- Stops what runs and starts nothing more.
function PhaseRun:cancel(why)
  if self.cancelled then return end
  self.cancelled = why
  -- Whoever does not end is closed after the grace, not only at the end of the phase.
  local kill_at = now() + task.grace
  for t in self.scope:tasks() do t.grace_end = t.grace_end or kill_at end
  self.scope:cancel(why)
  -- A task that waits for one that is cancelled is dropped when that one ends; in a sequential
  -- phase the same happens one by one.
end

-- ---- the whole ----------------------------------------------------------------------------------

-- "ok", "failed", "cancelled" or "skipped", as the record says.
local function outcome_of(self)
  if self.fatal then return "failed" end
  if self.cancelled then return "cancelled" end
  if self.asked then return "skipped" end
  return "ok"
end

local function prepare(run, node)
  local phase = run.registry[node.name]
  local self = setmetatable({
    run = run, node = node, phase = phase, name = node.name, next = 1, failures = 0, watched = 0,
    sequential = node.mode == "lifo" or node.mode == "fifo",
  }, PhaseRun)
  phase.status, phase.started_at, phase.run = "running", now(), self
  run.active[#run.active + 1] = self
  collect(self)
  return self
end

local function set_times(self)
  local run, node, from = self.run, self.node, self.phase.started_at
  local policy = node.on_fail
  self.deadline, self.limit = limits(run, node, from)
  task.limit_grace(run:grace_limit_for(node))
  if type(policy) == "table" then
    self.policy, self.per_attempt = policy, true
    local total_end = run:limit_for(node)
    local own = policy.give_up_after and from + policy.give_up_after
    self.retry_end = own and total_end and math.min(own, total_end) or own or total_end
  end
end

local function start(self)
  set_times(self)
  self.quiet = self.pending > record.MANY
  self.scope = task.new_scope(self.run.kind .. ":" .. self.name, task.pipeline)
  self.waiter = task.waiter("phase " .. self.name)
  if self.sequential then start_next(self) else start_all(self) end
  if self.pending > 0 then
    self.run:waits()
    self.waiter:wait()
  end
  self.scope:join()
end

local function leave(self)
  local active = self.run.active
  for i = 1, #active do
    if active[i] == self then return table.remove(active, i) end
  end
end

--- Runs a phase to its end. Must be called in a task that nobody cancels.
---@param run moontide.Run
---@param node table
---@return moontide.PhaseRun
function M.run(run, node)
  local self = prepare(run, node)
  local phase = self.phase
  record.phase_begins(self)
  if self.pending > 0 then start(self) end
  phase.status, phase.ended_at = "done", now()
  phase.outcome, phase.why = outcome_of(self), self.asked
  if self.faults then failure.faults(self) end
  leave(self)
  record.phase_ended(self)
  return self
end

return M
