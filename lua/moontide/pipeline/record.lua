--- What a pipeline writes to the log: a record for each phase and task, and why something failed.
--
-- Written on the core's log directly: no table is made for a record. In a phase of more than MANY
-- tasks only failures have a record of their own; the phase's says how many there were.

local core = require "moontide.core"
local duration = require "moontide.duration"
local task = require "moontide.task"

local write = core.log.write

local M = {}

M.MANY = 100

local DEBUG, INFO, WARN, ERROR = 0, 1, 2, 3
local WORDS = {
  timed_out = "timed out", interrupted = "was interrupted", abandoned = "was abandoned",
  cancelled = "was cancelled", failed = "failed",
}

local function milliseconds(item)
  local from, to = item.started_at, item.ended_at or core.clock.now()
  return from and math.floor((to - from) * 1000 + 0.5) or 0
end
M.milliseconds = milliseconds

-- How long the __tostring of an error value may run, in seconds.
local TEXT_LIMIT = 0.1

--- The text of any error value; a string's traceback is not part of it. The value is the script's:
--- its __tostring may raise or spin, and neither may reach who writes the record.
---@return string
function M.text(err)
  if type(err) == "string" then return err end
  local co = core.coroutine.create(tostring)
  local ok, text = core.coroutine.resume(co, core.clock.now() + TEXT_LIMIT, err)
  return ok and text or ("(a %s whose __tostring fails)"):format(type(err))
end

--- A traceback without its first line.
---@param traceback string of debug.traceback
---@return string
function M.stack(traceback)
  return (traceback:gsub("^\n?stack traceback:\n", ""))
end

--- A phase begins: what the watchdog, systemd and a reader are told.
function M.phase_begins(phase_run)
  core.watchdog.phase(phase_run.name)
  if phase_run.pending > 0 then phase_run.run:status("phase " .. phase_run.name) end
end

-- The most that one of its tasks was tried.
local function attempts(phase_run)
  local most = 1
  for _, entry in ipairs(phase_run.list) do
    if entry.attempts > most then most = entry.attempts end
  end
  return most
end

--- A phase is over.
function M.phase_ended(phase_run)
  local phase, run = phase_run.phase, phase_run.run
  local count = #phase_run.list
  core.watchdog.phase(nil)
  local level = phase.outcome == "failed" and WARN or INFO
  write(level, "lifecycle", run.kind .. " phase " .. phase.outcome,
    "phase", phase_run.name, "duration_ms", milliseconds(phase),
    "attempts", attempts(phase_run), "tasks", count, "failed", phase_run.failures,
    "skipped", phase_run.skipped, "outcome", phase.outcome)
end

--- A phase that has no tasks.
function M.phase_passed(run, name)
  write(DEBUG, "lifecycle", run.kind .. " phase ok", "phase", name, "duration_ms", 0, "tasks", 0,
    "outcome", "ok")
end

--- A phase that does not run, with the number of tasks that so do not run either.
function M.phase_skipped(run, name, count, why)
  local level = (count == 0 and why ~= "disabled") and DEBUG or INFO
  write(level, "lifecycle", ("%s phase %s: %s"):format(run.kind,
    why == "disabled" and "disabled" or "skipped", name),
    "phase", name, "tasks", count, "outcome", "skipped", "why", why)
end

function M.task_ended(phase_run, entry)
  write(INFO, "lifecycle", phase_run.run.kind .. " task ok",
    "phase", phase_run.name, "task", entry.name, "duration_ms", milliseconds(entry),
    "attempts", entry.attempts, "outcome", entry.outcome)
end

function M.task_skipped(phase_run, entry, why)
  if phase_run.quiet then return end
  write(INFO, "lifecycle", phase_run.run.kind .. " task skipped",
    "phase", phase_run.name, "task", entry.name, "outcome", "skipped", "why", why)
end

-- The time that the limit gave a late task, also when the loop was held up and it began late. The
-- start is read with the turn it began in: no closer than a millisecond to the setting.
local function had(entry, err)
  local seconds = entry.deadline and math.max(0, entry.deadline - entry.started_at)
  if entry.attempts > 1 or not seconds then -- of the last attempt
    seconds = task.is_cancelled(err) and err.seconds or nil
  end
  return seconds and duration.format(math.floor(seconds * 1000 + 0.5) / 1000)
end

-- Whose deadline a late task has passed; nil for one that was not late.
local function limit_of(entry, err)
  if task.is_cancelled(err) then return err.limit end
  local late = entry.deadline and entry.ended_at >= entry.deadline
  return late and entry.outcome == "interrupted" and entry.limit or nil
end

local function what_happened(phase_run, entry)
  local err = entry.error
  local text = ("task %s of phase %s %s"):format(entry.name, phase_run.name,
    WORDS[entry.outcome] or entry.outcome)
  if entry.outcome == "failed" then return text .. ": " .. M.text(err) end
  local ms = milliseconds(entry)
  text = ("%s after %.4g s"):format(text, ms / 1000)
  if task.is_cancelled(err) and err.kind == "cancelled" then return text .. ": " .. err.reason end
  local limit = limit_of(entry, err)
  if not limit then return text end
  local time = had(entry, err)
  return ("%s: %s%s"):format(text, limit, time and ", " .. time or "")
end

--- A task did not end well. `fatal`: the first that ends the run, one ERROR record.
function M.task_failed(phase_run, entry, fatal)
  local what = what_happened(phase_run, entry)
  entry.message = what
  if fatal then what = what .. (phase_run.run.kind == "startup" and "; startup has failed"
    or "; the shutdown is aborted") end
  write(fatal and ERROR or WARN, "lifecycle", what,
    "phase", phase_run.name, "task", entry.name, "duration_ms", milliseconds(entry),
    "attempts", entry.attempts, "outcome", entry.outcome,
    "error", (entry.error ~= nil or entry.outcome == "failed") and M.text(entry.error) or nil,
    "traceback", entry.traceback)
end

--- All faults of a phase in one ERROR record; the first stands for them in the run.
function M.faults(phase_run)
  local faults, texts = phase_run.faults, {}
  for i, entry in ipairs(faults) do texts[i] = entry.name .. ": " .. M.text(entry.error) end
  local message = ("phase %s found %d fault%s: %s"):format(phase_run.name, #faults,
    #faults == 1 and "" or "s", table.concat(texts, "; "))
  faults[1].message = message
  write(ERROR, "lifecycle", message .. "; startup has failed", "phase", phase_run.name,
    "outcome", "failed")
  phase_run.run:failed(phase_run, faults[1])
end

--- An attempt failed, the next follows after `delay` seconds.
function M.attempt_failed(phase_run, entry, t, delay)
  write(WARN, "lifecycle", ("task %s of phase %s: attempt %d %s, next in %.3g s"):format(
    entry.name, phase_run.name, entry.attempts, WORDS[t.outcome] or t.outcome, delay),
    "phase", phase_run.name, "task", entry.name, "attempts", entry.attempts,
    "outcome", t.outcome, "error", M.text(t.error))
end

--- A task was given to a phase that is over.
function M.late_task(pipeline, phase, name, message)
  write(WARN, "lifecycle", "late_task_ignored: " .. message, "phase", phase, "task", name,
    "pipeline", pipeline.kind)
end

M.levels = { DEBUG = DEBUG, INFO = INFO, WARN = WARN, ERROR = ERROR }

return M
