--- Runs one entry of a phase: its deadline, its attempts, its outcome.
--
-- A task without a retry policy is one coroutine and nothing else. A policy adds a driver that
-- starts an attempt, joins it, and sleeps.

local core = require "moontide.core"
local record = require "moontide.pipeline.record"
local task = require "moontide.task"

local new_context = require("moontide.pipeline.context").new
local now = core.clock.now
local start_task, watchdog = core.task.start, core.watchdog

local M = {}

-- The watchdog's dump has this many places; tasks beyond them are only counted there.
local WATCHED = 64

--- Where the function of an entry is defined, "app.lua:12".
---@return string
function M.site(entry)
  if entry.site then return entry.site end
  local fn = entry.fn
  local info = debug.getinfo(fn, "S")
  return ("%s:%d"):format(info.short_src, info.linedefined)
end

-- Sets the limit of a task and the words for it.
local function set_limit(phase_run, entry, started)
  local at, text = phase_run.deadline, phase_run.limit
  if phase_run.per_attempt then at, text = phase_run:attempt_limit(started) end
  local own = entry.own_timeout
  if own and (not at or started + own < at) then
    at, text = started + own, "its own timeout"
  end
  entry.deadline, entry.limit = at, text
end

-- Begins an attempt. The entry is itself the table of options: a task costs no other.
local function launch(phase_run, entry, on_end, started)
  set_limit(phase_run, entry, started)
  entry.on_end, entry.attempts = on_end, entry.attempts + 1
  local reason = phase_run.run.reason
  local t
  if reason then
    t = start_task(phase_run.scope, entry, entry.fn, reason, new_context(entry))
  else
    t = start_task(phase_run.scope, entry, entry.fn, new_context(entry))
  end
  entry.task = t
  return t
end

-- What the watchdog would print for this entry, while it runs.
local function watch(phase_run, entry)
  phase_run.watched = phase_run.watched + 1
  entry.place = watchdog.begin(phase_run.name .. "/" .. entry.name, M.site(entry))
end

local function unwatch(phase_run, entry)
  watchdog.finish(entry.place)
  entry.place = nil
  phase_run.watched = phase_run.watched - 1
end

-- Ends an entry, in whatever way its (last) task did, and tells its phase.
local function finish(phase_run, entry, t, outcome, ended_at)
  if entry.place then unwatch(phase_run, entry) end
  if outcome ~= "ok" then
    ended_at = now() -- what ran too long has ended later than the pump's clock says
    entry.error, entry.traceback = t.error, t.left or t.stack
    if entry.asked then outcome = require("moontide.pipeline.skip").ended(entry, outcome) end
  elseif ended_at < entry.started_at then
    ended_at = entry.started_at
  end
  entry.state, entry.outcome, entry.ended_at, entry.task = "done", outcome, ended_at, false
  phase_run:ended(entry)
end

local function single_ended(t, entry, outcome, ended_at)
  finish(entry.phase_run, entry, t, outcome, ended_at)
end

-- ---- attempts -----------------------------------------------------------------------------------

local function may_retry(phase_run, entry, t)
  if phase_run.run.cut or phase_run.cancelled or entry.asked then return false end
  if t.outcome == "cancelled" then return false end
  return not require("moontide.retry").is_permanent(t.error)
end

-- Says when the next attempt begins, or nil when there will be none.
local function next_attempt(phase_run, entry, policy)
  local at = now()
  if policy:exhausted(entry.attempts, at - entry.started_at) then return nil end
  local delay = policy:delay(entry.attempts)
  local last = phase_run.retry_end
  if last and at + delay >= last then return nil end
  return delay
end

local function drive(phase_run, entry, policy)
  while true do
    local t = launch(phase_run, entry, false, now())
    t:join()
    entry.last = t
    if t.outcome == "ok" or not may_retry(phase_run, entry, t) then return end
    local delay = next_attempt(phase_run, entry, policy)
    if not delay then return end
    phase_run:attempt_failed(entry, t, delay)
    entry.retry_at = now() + delay
    task.sleep(delay)
    entry.retry_at = nil
  end
end

local function driver_ended(driver)
  local entry = driver.opts.entry
  local last = entry.last
  entry.retry_at, entry.driver = nil, nil
  -- Cancelled in its sleep, or between attempts: that is the outcome, whatever failed before.
  if driver.outcome ~= "ok" or not last then last = driver end
  finish(entry.phase_run, entry, last, last.outcome, last.ended_at)
end

--- Starts an entry in its phase.
---@param phase_run moontide.PhaseRun
---@param entry moontide.Entry
---@param started number the present time
function M.start(phase_run, entry, started)
  entry.state, entry.started_at, entry.phase_run = "running", started, phase_run
  if phase_run.watched < WATCHED then watch(phase_run, entry) end
  if record.observer then
    record.observer("task_began", phase_run.run.kind, phase_run.name, entry.name)
  end
  local policy = entry.retry or phase_run.policy
  if not policy then return launch(phase_run, entry, single_ended, started) end
  entry.driver = task.start({
    name = entry.name .. " (attempts)", scope = phase_run.scope, kind = "attempts", entry = entry,
    on_end = driver_ended, detached_errors = true,
  }, drive, phase_run, entry, policy)
end

return M
