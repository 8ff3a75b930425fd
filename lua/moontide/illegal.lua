--- Combinations that cannot be, as data. Pure.
---
--- Each row looks at what was asked for and returns the messages of what is wrong
--- with it. Only chosen values are held against anybody: a default that does not fit
--- is clipped where it is used.
local duration = require("moontide.duration")

local M = {}

---@class tide.Subject what the rows look at
---@field config table `moontide.config`, sealed
---@field startup tide.PhaseGraph sealed
---@field shutdown tide.PhaseGraph sealed
---@field budgets { startup: tide.BudgetReport, shutdown: tide.BudgetReport }
---@field exits boolean|nil the watchdog ends the process at a total (not embedded)
---@field kubernetes boolean|nil the process runs in a pod
---@field chosen { budget: table, report: tide.BudgetReport, node: tide.PhaseNode }[]|nil filled in

local function text(config, key)
  local value = config.get(key)
  if type(value) == "number" then value = duration.format(value) end
  return ("%s %s (%s)"):format(key, tostring(value), config.origin(key))
end

-- Of most phases nothing was asked for.
local function is_chosen(budget)
  local minimum = budget.minimum
  return budget.explicit or budget.unbounded or budget.retry or minimum and minimum.explicit
end

local function chosen_phases(subject)
  local chosen = {}
  for _, kind in ipairs({ "startup", "shutdown" }) do
    local report, graph = subject.budgets[kind], subject[kind]
    for _, budget in ipairs(report.phases) do
      if is_chosen(budget) then
        chosen[#chosen + 1] = { budget = budget, report = report, node = graph:get(budget.name) }
      end
    end
  end
  return chosen
end

--- One message for each chosen phase of both pipelines of which `say` has something to say.
local function each_phase(subject, say)
  local messages = {}
  for _, phase in ipairs(subject.chosen) do
    local message = say(phase.budget, phase.report, phase.node)
    if message then
      messages[#messages + 1] = ("%s phase \"%s\": %s"):format(phase.report.kind,
        phase.budget.name, message)
    end
  end
  return messages
end

local function terminate_without_host(subject)
  local config = subject.config
  if config.get("shutdown.run_by_terminate") and not config.get("shutdown.terminate_host") then
    return { ("%s: tide.terminate() would run a pipeline that does not terminate the host; set"
      .. " shutdown.run_by_terminate to false as well"):format(
      text(config, "shutdown.terminate_host")) }
  end
end

local function linger_takes_all(subject)
  local config = subject.config
  if config.get("shutdown.linger") >= config.get("shutdown.timeout") then
    return { ("%s leaves nothing of %s to drain in"):format(
      text(config, "shutdown.linger"), text(config, "shutdown.timeout")) }
  end
end

--- linger, drain, worker drains and the terminal drain are spent inside a phase.
local function shorter_than_needed(subject)
  return each_phase(subject, function(budget)
    local minimum = budget.minimum
    if not (minimum and budget.explicit) or budget.timeout >= minimum.seconds
      or budget.wanted then
      return nil
    end
    return ("timeout %s (%s) is shorter than %s = %s (%s) that it has to hold"):format(
      duration.format(budget.timeout), budget.origin, minimum.why,
      duration.format(minimum.seconds), minimum.origin)
  end)
end

--- No error: the total may have been shortened from outside, and phases share it.
local function need_above_total(subject)
  return each_phase(subject, function(budget, report)
    local minimum = budget.minimum
    if not (minimum and minimum.explicit) or minimum.seconds <= report.total then return nil end
    if budget.name == "before-service-unbind" then return nil end -- `linger_takes_all`
    return ("has to hold %s = %s (%s), more than the %s total of %s (%s) leaves it"):format(
      minimum.why, duration.format(minimum.seconds), minimum.origin, report.kind,
      duration.format(report.total), report.total_origin)
  end)
end

local function phase_above_total(subject)
  return each_phase(subject, function(budget, report, node)
    if not (budget.explicit and budget.wanted) then return nil end
    return ("timeout %s (%s) is longer than the %s total of %s (%s)"):format(
      duration.format(budget.wanted), node.timeout_origin, report.kind,
      duration.format(report.total), report.total_origin)
  end)
end

local function none_without_total(subject)
  return each_phase(subject, function(budget, report, node)
    if not budget.unbounded or (report.total and report.total < math.huge) then return nil end
    return ("timeout \"none\" (%s) is possible only while a total is set"):format(
      node.timeout_origin)
  end)
end

local function crippled_terminal(subject)
  local messages = {}
  for _, graph in ipairs({ subject.startup, subject.shutdown }) do
    local node = graph.terminal and graph:get(graph.terminal)
    if node and node.recover == false then
      messages[#messages + 1] = ("the terminal phase \"%s\" cannot have recover = false: nothing"
        .. " runs after it"):format(node.name)
    end
    if node and not node.enabled then
      messages[#messages + 1] = ("the terminal phase \"%s\" cannot be disabled: it ends the host"
        ):format(node.name)
    end
  end
  return messages
end

local function retry_above_total(subject)
  return each_phase(subject, function(budget, report, node)
    local policy = budget.retry
    if not policy or node.builtin then return nil end
    local limit = policy.give_up_after or math.huge
    if limit <= budget.timeout and (policy.attempts or 2) > 1 then
      return ("%s: one attempt may take all of that (timeout %s, %s)"):format(
        tostring(policy), duration.format(budget.timeout), budget.origin)
    end
    local wanted = policy:worst_case(budget.timeout)
    if wanted <= report.total or wanted == math.huge then return nil end
    return ("%s may take %s, but the startup total is %s (%s)"):format(tostring(policy),
      duration.format(wanted), duration.format(report.total), report.total_origin)
  end)
end

local function watchdog_against_host(subject)
  if subject.exits and not subject.config.get("shutdown.exit_process") then
    return { ("%s: the watchdog of this process exits at a total; only an embedded host can"
      .. " keep its process"):format(text(subject.config, "shutdown.exit_process")) }
  end
end

local function unknown_in_reasons(subject)
  if next(subject.config.named("shutdown.reasons")) == nil then return nil end
  return require("moontide.illegal_reasons")(subject)
end

local function pod_without_grace(subject)
  if subject.kubernetes and not subject.config.get("shutdown.grace") then
    return { ("in Kubernetes without shutdown.grace: the default grace period is 30s, and %s; set"
      .. " shutdown.grace (and shutdown.prestop) to what the manifest says"):format(
      text(subject.config, "shutdown.timeout")) }
  end
end

local function pod_on_loopback(subject)
  local config = subject.config
  local host = config.get("manage.host")
  if subject.kubernetes and config.get("manage") and (host:find("^127%.") or host == "::1") then
    return { ("%s: the probes of a pod do not come from there; set MOONTIDE_MANAGE__HOST=0.0.0.0"
      ):format(text(config, "manage.host")) }
  end
end

local function prestop_without_grace(subject)
  local config = subject.config
  if config.is_set("shutdown.prestop") and not config.get("shutdown.grace") then
    return { ("%s counts only together with shutdown.grace"):format(
      text(config, "shutdown.prestop")) }
  end
end

local function unreachable_control(subject)
  local config = subject.config
  if not (config.is_set("control.dir") or config.is_set("console.uids")) then return nil end
  return require("moontide.illegal_control")(subject)
end

--- name: what a test and a message of `check` call it.
M.rows = {
  { "terminate without host", "error", terminate_without_host },
  { "linger takes all", "error", linger_takes_all },
  { "phase shorter than its work", "error", shorter_than_needed },
  { "phase above the total", "error", phase_above_total },
  { "none without a total", "error", none_without_total },
  { "crippled terminal phase", "error", crippled_terminal },
  { "watchdog against host", "error", watchdog_against_host },
  { "unknown names in reasons", "error", unknown_in_reasons },
  { "control socket out of reach", "error", unreachable_control },
  { "work above the total", "warning", need_above_total },
  { "retry above the total", "warning", retry_above_total },
  { "pod without grace", "warning", pod_without_grace },
  { "pod on loopback", "warning", pod_on_loopback },
  { "prestop without grace", "warning", prestop_without_grace },
}

--- Everything that is wrong, each message once.
---@param subject tide.Subject
---@return string[] errors
---@return string[] warnings
function M.check(subject)
  local found = { error = {}, warning = {} }
  subject.chosen = chosen_phases(subject)
  for _, row in ipairs(M.rows) do
    for _, message in ipairs(row[3](subject) or {}) do table.insert(found[row[2]], message) end
  end
  return found.error, found.warning
end

return M
