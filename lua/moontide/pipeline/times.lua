--- Gives the phases of a sealed pipeline the times they really have, and judges both together.

local budget = require "moontide.pipeline.budget"
local config = require "moontide.config"
local core = require "moontide.core"

local M = {}

local function workers()
  local room = package.loaded["moontide.worker"]
  return room and room.drains() or nil
end

--- The budget of a pipeline as it is declared now.
---@param pipeline moontide.Pipeline sealed
---@return tide.BudgetReport
function M.of(pipeline)
  return budget.compute(pipeline.graph, config, { workers = workers() })
end

--- The same, written into its phases.
---@param pipeline moontide.Pipeline sealed
---@return tide.BudgetReport
function M.apply(pipeline)
  local report = M.of(pipeline)
  for _, phase in ipairs(report.phases) do
    local node = pipeline.graph:get(phase.name)
    node.effective = phase.unbounded and math.huge or phase.timeout
  end
  pipeline.budget = report
  return report
end

--- What cannot be, and what should not be, of both pipelines with their settings.
---@param startup moontide.Pipeline
---@param shutdown moontide.Pipeline
---@return string[] errors
---@return string[] warnings
function M.judge(startup, shutdown)
  return require("moontide.illegal").check {
    config = config, startup = startup.graph, shutdown = shutdown.graph,
    budgets = { startup = startup.budget, shutdown = shutdown.budget },
    exits = core.host.mode == "process",
    kubernetes = os.getenv "KUBERNETES_SERVICE_HOST" ~= nil,
  }
end

return M
