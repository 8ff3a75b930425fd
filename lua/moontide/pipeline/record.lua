--- What a pipeline writes to the log: a record for each phase and task. Of what failed: `failure`.
--
-- Written on the core's log directly: no table is made for a record. In a phase of more than MANY
-- tasks only failures have a record of their own; the phase's says how many there were.

local core = require "moontide.core"

local write = core.log.write

local M = {}

M.MANY = 100

--- Hears what is recorded of phases and tasks: an embedding program.
---@type false|fun(what: string, pipeline: string, phase: string, ...: any)
M.observer = false

local DEBUG, INFO, WARN, ERROR = 0, 1, 2, 3
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
  if M.observer then M.observer("phase_began", phase_run.run.kind, phase_run.name) end
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
  if M.observer then
    M.observer("phase_ended", run.kind, phase_run.name, nil, phase.outcome, milliseconds(phase))
  end
end

--- A task is over, however it went.
function M.tell_task(phase_run, entry)
  if not M.observer then return end
  M.observer("task_ended", phase_run.run.kind, phase_run.name, entry.name, entry.outcome,
    milliseconds(entry))
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
  M.tell_task(phase_run, entry)
end

function M.task_skipped(phase_run, entry, why)
  if phase_run.quiet then return end
  write(INFO, "lifecycle", phase_run.run.kind .. " task skipped",
    "phase", phase_run.name, "task", entry.name, "outcome", "skipped", "why", why)
end

M.levels = { DEBUG = DEBUG, INFO = INFO, WARN = WARN, ERROR = ERROR }

return M
