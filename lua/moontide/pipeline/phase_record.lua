--- What a pipeline writes to the log of a phase with tasks, and of each of them; and tells whoever
--- embeds it. Loaded with the first such phase.
--
-- In a phase of more than MANY tasks only failures have a record of their own; the phase's says how
-- many there were.

local core = require "moontide.core"
local record = require "moontide.pipeline.record"

local write, milliseconds = core.log.write, record.milliseconds
local INFO, WARN = record.levels.INFO, record.levels.WARN

local M = {}

M.MANY = 100

--- A phase begins: what the watchdog, systemd and a reader are told.
function M.phase_begins(phase_run)
  core.watchdog.phase(phase_run.name)
  if record.observer then record.observer("phase_began", phase_run.run.kind, phase_run.name) end
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
  if record.observer then
    record.observer("phase_ended", run.kind, phase_run.name, nil, phase.outcome,
      milliseconds(phase))
  end
end

--- A task is over, however it went.
function M.tell_task(phase_run, entry)
  if not record.observer then return end
  record.observer("task_ended", phase_run.run.kind, phase_run.name, entry.name, entry.outcome,
    milliseconds(entry))
end

function M.task_ended(phase_run, entry)
  write(INFO, "lifecycle", phase_run.run.kind .. " task ok",
    "phase", phase_run.name, "task", entry.name, "duration_ms", milliseconds(entry),
    "attempts", entry.attempts, "outcome", entry.outcome)
  M.tell_task(phase_run, entry)
end

function M.task_skipped(phase_run, entry, why)
  if phase_run.quiet then return end
  write(INFO, "lifecycle", phase_run.run.kind .. " task skipped",
    "phase", phase_run.name, "task", entry.name, "outcome", "skipped", "why", why)
end

return M
