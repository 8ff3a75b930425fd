--- A pipeline of a report as rows: its phases and their tasks in the order they ran, each with its
--- place in time, and whether the end had to wait for it. Pure.
local M = {}

---@class moontide.ReportRow
---@field phase boolean else a task
---@field name string
---@field outcome string
---@field at number|nil seconds from the start of the pipeline; nil: it never started
---@field seconds number|nil
---@field critical boolean the end waited for it
---@field item moontide.ReportPhase|moontide.ReportTask

local function critical(pipeline)
  local phases, tasks = {}, {}
  for _, link in ipairs(pipeline.chain) do
    phases[link.phase] = true
    for _, task in ipairs(link.tasks or {}) do tasks[link.phase .. "\0" .. task.task] = true end
  end
  return phases, tasks
end

--- Whether a phase has anything to show: all but the empty ones that went well.
local function worth_a_row(phase)
  return #phase.tasks > 0 or phase.outcome ~= "ok" or (phase.seconds or 0) >= 0.001
end

---@param pipeline moontide.ReportPipeline
---@return moontide.ReportRow[]
---@return integer empty phases that are left out: nothing was to be done in them
function M.of(pipeline)
  local phases, tasks = critical(pipeline)
  local rows, empty = {}, 0
  local function add(item, is_phase, waited)
    rows[#rows + 1] = {
      phase = is_phase, name = item.name, outcome = item.outcome, at = item.at,
      seconds = item.seconds, critical = waited or false, item = item,
    }
  end
  for _, phase in ipairs(pipeline.phases) do
    if worth_a_row(phase) then
      add(phase, true, phases[phase.name])
      for _, task in ipairs(phase.tasks) do
        add(task, false, tasks[phase.name .. "\0" .. task.name])
      end
    else
      empty = empty + 1
    end
  end
  return rows, empty
end

return M
