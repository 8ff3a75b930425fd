--- What time each phase has, where that comes from, and what the whole can take.
--- Pure. It computes and judges nothing: `illegal` says what cannot be.
local duration = require("moontide.duration")

local M = {}

---@class tide.PhaseBudget
---@field name string
---@field timeout number seconds: of one attempt where there is a retry policy
---@field origin string where the timeout comes from
---@field worst number seconds it can take of the total, retries included
---@field explicit boolean somebody chose the timeout
---@field unbounded boolean it has whatever the total leaves
---@field enabled boolean
---@field wanted number|nil the timeout before it was clipped to the total
---@field minimum tide.PhaseMinimum|nil

---@class tide.PhaseMinimum
---@field seconds number
---@field why string "shutdown.drain 30s + 2s"
---@field origin string of the setting
---@field explicit boolean whether somebody chose that setting

---@class tide.BudgetReport
---@field kind "startup"|"shutdown"
---@field phases tide.PhaseBudget[] in the order of the plan
---@field by_name table<string, tide.PhaseBudget>
---@field total number
---@field total_origin string
---@field reserve number of the total: for the terminal phase, report and log
---@field worst_case number seconds that the phases can take, were there no total
---@field parallel boolean
---@field linger number|nil shutdown

local RESERVE, RESERVE_PART = 5, 8

--- What is kept of a total for the terminal phase, the report and the log.
---@param total number
---@return number seconds
function M.reserve(total)
  return math.min(RESERVE, total / RESERVE_PART)
end

local function longest_worker(workers)
  local longest
  for _, worker in ipairs(workers or {}) do
    if worker.drain and (not longest or worker.drain > longest.drain) then longest = worker end
  end
  return longest
end

--- Phase -> the least it needs because of what runs in it.
local function minimums(config, extras)
  local result = {}
  local function from_setting(phase, key, margin)
    local value = config.get(key)
    result[phase] = {
      seconds = value + margin, origin = config.origin(key), explicit = config.is_set(key),
      why = ("%s %s + %ds"):format(key, duration.format(value), margin),
    }
  end
  from_setting("before-service-unbind", "shutdown.linger", 1)
  from_setting("service-requests-done", "shutdown.drain", 2)
  from_setting("actor-system-terminate", "shutdown.terminate_drain", 3)
  local worker = longest_worker(extras.workers)
  if worker then
    result["service-stop"] = {
      seconds = worker.drain + 1, origin = worker.site or "worker",
      explicit = worker.chosen ~= false, -- a default drain is not held against anybody
      why = ("drain %s of worker \"%s\" + 1s"):format(duration.format(worker.drain), worker.name),
    }
  end
  return result
end

local function chosen_timeout(node, config, kind)
  local origin = node.timeout_origin
  if node.timeout then return node.timeout, origin, origin ~= "default" end
  local key = kind .. ".default_phase_timeout"
  return config.get(key), config.origin(key), false
end

--- The budget of one phase. A default gives way to what runs in the phase and to
--- the total; a chosen value stays, for `illegal` to speak of.
local function phase_budget(node, config, kind, total, minimum)
  local timeout, origin, explicit = chosen_timeout(node, config, kind)
  local budget = {
    name = node.name, explicit = explicit, enabled = node.enabled, minimum = minimum,
    unbounded = timeout == math.huge,
  }
  if minimum and timeout < minimum.seconds and not explicit then
    timeout, origin = minimum.seconds, ("%s (%s)"):format(minimum.why, minimum.origin)
  end
  if timeout > total then
    if not budget.unbounded then budget.wanted = timeout end
    origin = budget.unbounded and ("none: what the total leaves (%s)"):format(origin)
      or ("%s, clipped to the total"):format(origin)
    timeout = total
  end
  budget.timeout, budget.origin = timeout, origin
  budget.worst = timeout
  if type(node.on_fail) == "table" then
    budget.retry = node.on_fail
    budget.worst = math.min(node.on_fail:worst_case(timeout), total)
  end
  -- It has what others leave, and a disabled phase takes nothing.
  if budget.unbounded or not node.enabled then budget.worst = 0 end
  return budget
end

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

--- The budget of a sealed graph.
---@param graph tide.PhaseGraph
---@param config table `moontide.config`, sealed
---@param extras? { workers: { name: string, drain: number, site: string, chosen: boolean }[] }
---@return tide.BudgetReport
function M.compute(graph, config, extras)
  local kind = graph.kind
  local total = config.get(kind .. ".timeout")
  local report = {
    kind = kind, phases = {}, by_name = {}, total = total,
    total_origin = config.origin(kind .. ".timeout"), reserve = M.reserve(total),
    parallel = config.get(kind .. ".parallel"),
  }
  local least = kind == "shutdown" and minimums(config, extras or {}) or {}
  if kind == "shutdown" then report.linger = config.get("shutdown.linger") end
  local sum = 0
  for i, name in ipairs(graph:order()) do
    local budget = phase_budget(graph:get(name), config, kind, total, least[name])
    report.phases[i], report.by_name[name] = budget, budget
    sum = sum + budget.worst
  end
  report.worst_case = report.parallel and M.critical_path(graph, report).seconds or sum
  return report
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

--- The earliest of the ends that concern a task, and whose it is.
---@param ends table own, phase_end, total_end, reserve: numbers or nil; phase, kind: their names
---@return number|nil at on the clock the ends are on
---@return string|nil limit "its own timeout", "phase db", "the startup total"
function M.deadline(ends)
  local at, limit = ends.own, ends.own and "its own timeout"
  if ends.phase_end and (not at or ends.phase_end < at) then
    at, limit = ends.phase_end, ends.phase and "phase " .. ends.phase or "its phase"
  end
  local total_end = ends.total_end and ends.total_end - (ends.reserve or 0)
  if total_end and (not at or total_end < at) then
    at, limit = total_end, ends.kind and ("the %s total"):format(ends.kind) or "the total"
  end
  return at, limit
end

return M
