--- The host's own families: state, phases and their tasks.
local core = require "moontide.core"

local M = {}

local STATES = require("moontide.states").NAMES

-- Each phase that began, with how long it took or has been running.
local function phase_durations(gauge, pipeline)
  local now = core.clock.now()
  for _, name in ipairs(pipeline.names) do
    local phase = pipeline.tasks[name]
    if phase.started_at then
      gauge:set((phase.ended_at or now) - phase.started_at, { phase = name })
    end
  end
end

local function task_outcomes(gauge, kind, pipeline)
  local counts = {}
  for _, name in ipairs(pipeline.names) do
    for entry in pipeline.tasks[name]:each() do
      local outcome = entry.outcome or entry.state
      counts[outcome] = (counts[outcome] or 0) + 1
    end
  end
  for outcome, count in next, counts do
    gauge:set(count, { pipeline = kind, outcome = outcome })
  end
end

---@param metrics table the registry
function M.declare(metrics)
  local startup, shutdown = require "moontide.startup", require "moontide.shutdown"
  local info = metrics.gauge("moontide_info", "What runs; always 1.", { "version", "name" })
  local state = metrics.gauge("moontide_lifecycle_state", "1 for the present state.", { "state" })
  local rising = metrics.gauge("moontide_startup_phase_duration_seconds",
    "How long a startup phase took, or has been running.", { "phase" })
  local ebbing = metrics.gauge("moontide_shutdown_phase_duration_seconds",
    "How long a shutdown phase took, or has been running.", { "phase" })
  local tasks = metrics.gauge("moontide_pipeline_tasks", "Tasks of the pipelines, by outcome.",
    { "pipeline", "outcome" })
  info:set(1, {
    version = core.host.version, name = require("moontide.config").get("name") or core.host.name
      or "",
  })
  metrics.on_collect(function()
    local present = core.state.get()
    for _, name in ipairs(STATES) do state:set(name == present and 1 or 0, { state = name }) end
    phase_durations(rising, startup)
    phase_durations(ebbing, shutdown)
    tasks:clear()
    task_outcomes(tasks, "startup", startup)
    task_outcomes(tasks, "shutdown", shutdown)
  end)
end

return M
