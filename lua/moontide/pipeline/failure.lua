--- What a pipeline writes to the log when something fails: which task, after what time, and whose
--- limit it was. Loaded with the first failure.

local core = require "moontide.core"
local duration = require "moontide.duration"
local phase_record = require "moontide.pipeline.phase_record"
local record = require "moontide.pipeline.record"
local task = require "moontide.task"

local write = core.log.write
local milliseconds = record.milliseconds
local WARN, ERROR = record.levels.WARN, record.levels.ERROR

local M = {}

local WORDS = {
  timed_out = "timed out", interrupted = "was interrupted", abandoned = "was abandoned",
  cancelled = "was cancelled", failed = "failed",
}

-- The time that the limit gave a late task, also when the loop was held up and it began late. The
-- start is read with the turn it began in: no closer than a millisecond to the setting.
local function had(entry, err)
  local seconds = entry.deadline and math.max(0, entry.deadline - entry.started_at)
  if entry.attempts > 1 or not seconds then -- of the last attempt
    seconds = task.is_cancelled(err) and err.seconds or nil
  end
  return seconds and duration.rounded(seconds)
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
  if entry.outcome == "failed" then return text .. ": " .. record.text(err) end
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
    "error", (entry.error ~= nil or entry.outcome == "failed") and record.text(entry.error) or nil,
    "traceback", entry.traceback)
  phase_record.tell_task(phase_run, entry)
end

--- All faults of a phase in one ERROR record; the first stands for them in the run.
function M.faults(phase_run)
  local faults, texts = phase_run.faults, {}
  for i, entry in ipairs(faults) do texts[i] = entry.name .. ": " .. record.text(entry.error) end
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
    "outcome", t.outcome, "error", record.text(t.error))
end

--- A task was given to a phase that is over.
function M.late_task(pipeline, phase, name, message)
  write(WARN, "lifecycle", "late_task_ignored: " .. message, "phase", phase, "task", name,
    "pipeline", pipeline.kind)
end

return M
