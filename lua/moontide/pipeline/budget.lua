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
    unbounded = timeout == math.huge, timeout = nil, origin = nil, worst = nil,
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
  report.worst_case = sum
  if report.parallel then
    report.worst_case = require("moontide.pipeline.fit").critical_path(graph, report).seconds
  end
  return report
end

return M
