--- From the pipelines as they ended to the plain tables of a report.
local core = require "moontide.core"
local record = require "moontide.pipeline.record"

local M = {}

-- Seconds, to the microsecond: more is noise in a file.
local function rounded(seconds)
  return math.floor(seconds * 1e6 + 0.5) / 1e6
end

-- When something began, from the start of its pipeline, and how long it took.
local function span(item, from, now)
  if not item.started_at then return nil, nil end
  return rounded(item.started_at - from), rounded((item.ended_at or now) - item.started_at)
end

local function task_of(entry, from, now)
  local at, seconds = span(entry, from, now)
  local outcome = entry.outcome or (at and "running" or "skipped")
  local task = {
    name = entry.name, outcome = outcome, at = at, seconds = seconds, after = entry.after,
  }
  if entry.attempts > 0 then task.attempts = entry.attempts end
  if outcome ~= "ok" and entry.error then
    task.error = record.text(entry.error)
    task.limit = entry.limit or nil
    task.traceback = entry.traceback
  end
  return task
end

local function phase_of(run, name, from, now)
  local tasks, node = run.registry[name], run.graph:get(name)
  local at, seconds = span(tasks, from, now)
  local phase = {
    name = name, outcome = tasks.outcome or (at and "running" or "skipped"), why = tasks.why,
    at = at, seconds = seconds, tasks = {},
  }
  if type(node.timeout) == "number" and node.timeout < math.huge then
    phase.timeout = node.timeout + (node.extended or 0)
  end
  if run.parallel then phase.needs = run.graph:dependencies(name) end
  for entry in tasks:each() do
    phase.tasks[#phase.tasks + 1] = task_of(entry, from, now)
  end
  return phase
end

local function outcome_of(run)
  if run.failure then return "failed" end
  if run.cut then return "stopped" end
  return run.over and "ok" or "running"
end

local function pipeline_of(run)
  local now = core.clock.now()
  local from = run.started_at
  local pipeline = {
    kind = run.kind, outcome = outcome_of(run), total = run.total,
    started = rounded(core.clock.wall() - (now - from)),
    seconds = rounded((run.ended_at or now) - from), phases = {},
  }
  for _, name in ipairs(run.graph:order()) do
    pipeline.phases[#pipeline.phases + 1] = phase_of(run, name, from, now)
  end
  return pipeline
end

--- The summary of both pipelines, as far as they ran.
---@param startup moontide.Startup
---@param shutdown moontide.Shutdown
---@param code integer
---@return moontide.Report
function M.make(startup, shutdown, code)
  local reason = shutdown.reason
  local summary = {
    name = require("moontide.config").get("name") or core.host.name,
    version = core.host.version, exit_code = code, pipelines = {},
    reason = reason and { kind = reason.kind, text = tostring(reason) },
  }
  local interventions = package.loaded["moontide.console.intervention"]
  if interventions and #interventions.list > 0 then summary.console = interventions.list end
  local http = package.loaded["moontide.http"]
  if http and #http.servers > 0 then summary.drains = http.drain_reports() end
  for _, pipeline in ipairs { startup, shutdown } do
    if pipeline.run_state then
      summary.pipelines[#summary.pipelines + 1] = pipeline_of(pipeline.run_state)
    end
  end
  return summary
end

return M
