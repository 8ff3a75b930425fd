--- Whether what phases can take fits the time that there is. Pure; for `check`, and for pipelines
--- whose phases run beside each other.
local duration = require("moontide.duration")

local M = {}

--- The chain of edges that takes longest: what remains when the rest runs beside it.
--- It looks at every edge, so that `compute` leaves it to those who ask.
---@param graph tide.PhaseGraph sealed
---@param report tide.BudgetReport
---@return { names: string[], seconds: number }
function M.critical_path(graph, report)
  local ends, before, last = {}, {}, nil
  for _, name in ipairs(graph:order()) do
    local start, from = 0, nil
    for _, other in ipairs(graph:dependencies(name)) do
      if not from or ends[other] > start then start, from = ends[other], other end
    end
    ends[name], before[name] = start + report.by_name[name].worst, from
    if not last or ends[name] >= ends[last] then last = name end
  end
  local names, seconds = {}, last and ends[last] or 0
  while last do
    table.insert(names, 1, last)
    last = before[last]
  end
  return { names = names, seconds = seconds }
end

---@class tide.FitReport
---@field fits boolean
---@field needed number seconds of grace period
---@field message string
---@field warnings string[]

local LAME_DUCK = 10

--- Whether a shutdown fits a grace period: preStop, then the total, then a second to
--- leave. The warning is about load balancers that have not yet taken note.
---@param report tide.BudgetReport of the shutdown
---@param grace number
---@param prestop? number
---@return tide.FitReport
function M.fits(report, grace, prestop)
  prestop = prestop or 0
  local format = duration.format
  local needed = prestop + report.total + 1
  local fits = needed <= grace
  local sum = ("prestop %s + shutdown total %s + 1s = %s"):format(
    format(prestop), format(report.total), format(needed))
  local result = { fits = fits, needed = needed, warnings = {} }
  if fits then
    result.message = ("fits the grace period of %s: %s"):format(format(grace), sum)
  else
    result.message = ("does not fit the grace period of %s: %s (%s); raise the grace period to %s")
      :format(format(grace), sum, report.total_origin, format(needed))
    local left = grace - prestop - 1
    if left > 0 then
      result.message = ("%s, or set shutdown.timeout to %s"):format(result.message, format(left))
    end
  end
  local quiet = prestop + (report.linger or 0)
  if quiet < LAME_DUCK then
    result.warnings[1] = (
      "prestop %s + linger %s is less than %s: load balancers may still send requests when the"
      .. " listeners close"):format(format(prestop), format(report.linger or 0), format(LAME_DUCK))
  end
  return result
end

return M
