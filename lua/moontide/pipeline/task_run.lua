--- Runs one entry of a phase: its deadline, its attempts, its outcome.
--
-- A task without a retry policy is one coroutine and nothing else. A policy adds a driver that
-- starts an attempt, joins it, and sleeps.

local core = require "moontide.core"
local context = require "moontide.pipeline.context"
local task = require "moontide.task"

local now = core.clock.now
local watchdog = core.watchdog

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

--- The limit of a task and the words for it.
local function limit_of(phase_run, entry, started)
  local at, text = phase_run.deadline, phase_run.limit
  if phase_run.per_attempt then at, text = phase_run:attempt_limit(started) end
  local own = entry.own_timeout
  if own and (not at or started + own < at) then
    return started + own, "its own timeout"
  end
  return at, text
end

-- Begins an attempt. The entry is itself the table of options: a task costs no other.
local function launch(phase_run, entry, on_end, started)
  local run = phase_run.run
  entry.deadline, entry.limit = limit_of(phase_run, entry, started)
  entry.on_end, entry.attempts = on_end, entry.attempts + 1
  local ctx = context.new(entry)
  local t
  if run.reason then
    t = phase_run.scope:start(entry, entry.fn, run.reason, ctx)
  else
    t = phase_run.scope:start(entry, entry.fn, ctx)
  end
  entry.task = t
  return t
end

-- What the watchdog would print for this entry, while it runs.
local function watch(phase_run, entry)
  if phase_run.watched >= WATCHED then return end
  phase_run.watched = phase_run.watched + 1
  entry.place = watchdog.begin(phase_run.name .. "/" .. entry.name, M.site(entry))
end

local function unwatch(phase_run, entry)
  watchdog.finish(entry.place)
  entry.place = nil
  phase_run.watched = phase_run.watched - 1
end

-- Ends an entry, in whatever way its (last) task did, and tells its phase.
local function finish(phase_run, entry, t)
  if entry.place then unwatch(phase_run, entry) end
  local outcome = t.outcome
  entry.state, entry.outcome, entry.ended_at, entry.task = "done", outcome, now(), false
  if outcome ~= "ok" then entry.error, entry.traceback = t.error, t.left or t.stack end
  phase_run:ended(entry)
end

local function single_ended(t)
  local entry = t.opts
  finish(entry.phase_run, entry, t)
end

-- ---- attempts -----------------------------------------------------------------------------------

local function may_retry(phase_run, t)
  if phase_run.run.cut or phase_run.cancelled then return false end
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
    if t.outcome == "ok" or not may_retry(phase_run, t) then return end
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
  entry.retry_at = nil
  -- Cancelled in its sleep, or between attempts: that is the outcome, whatever failed before.
  if driver.outcome ~= "ok" or not last then last = driver end
  finish(entry.phase_run, entry, last)
end

--- Starts an entry in its phase.
---@param phase_run moontide.PhaseRun
---@param entry moontide.Entry
function M.start(phase_run, entry)
  local started = now()
  entry.state, entry.started_at, entry.phase_run = "running", started, phase_run
  watch(phase_run, entry)
  local policy = entry.retry or phase_run.policy
  if not policy then return launch(phase_run, entry, single_ended, started) end
  task.start({
    name = entry.name .. " (attempts)", scope = phase_run.scope, kind = "attempts", entry = entry,
    on_end = driver_ended, detached_errors = true,
  }, drive, phase_run, entry, policy)
end

return M
