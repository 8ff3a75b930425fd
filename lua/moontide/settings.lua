--- What follows from the configuration: totals, reserve, what a reason overrides, and how much the
--- console may do.

local budget = require "moontide.pipeline.budget"
local config = require "moontide.config"

local M = {}

--- The overrides for a reason: those of its kind, else of the nearest kind that it extends.
---@param reason tide.Reason|nil
---@return { exit_code: integer|nil, skip: string[]|nil, timeout: number|nil }|nil
function M.reason(reason)
  local overrides = reason and config.named("shutdown.reasons")
  if not overrides or next(overrides) == nil then return nil end
  for _, kind in ipairs(reason:chain()) do
    if overrides[kind] then return overrides[kind] end
  end
end

--- The total of the shutdown, without a reason. (The grace period is in it: config.seal.)
---@return number seconds
function M.shutdown_total()
  return config.get("shutdown.timeout")
end

---@param reason tide.Reason|nil
---@return { total: number, reserve: number, skip: table|nil, parallel: boolean }
function M.shutdown(reason)
  local override = M.reason(reason) or {}
  local total = override.timeout or M.shutdown_total()
  local skip
  for _, name in ipairs(override.skip or {}) do
    skip = skip or {}
    skip[name] = true
  end
  return {
    total = total, reserve = budget.reserve(total), skip = skip,
    parallel = config.get("shutdown.parallel"),
  }
end

---@return { total: number, reserve: number, parallel: boolean }
function M.startup()
  local total = config.get("startup.timeout")
  return {
    total = total, reserve = budget.reserve(total), parallel = config.get("startup.parallel"),
  }
end

-- Read before the script, which could change it.
local production = os.getenv "MOONTIDE_ENV" == "production"

--- What may be done at the console at most.
---@return "off"|"inspect"|"eval"
function M.console_policy()
  return config.get "console.policy" or (production and "inspect" or "eval")
end

return M
