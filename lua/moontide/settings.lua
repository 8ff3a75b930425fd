--- The configuration as the pipelines need it: totals, reserve, what a reason overrides.

local config = require "moontide.config"
local core = require "moontide.core"

local M = {}

--- What is kept of a total for the last phase, the report and the logs.
---@param total number seconds
---@return number seconds
function M.reserve(total)
  return math.min(5, total / 8)
end

--- The overrides for a reason, its own or those of the nearest kind it extends.
---@param reason moontide.Reason|nil
---@return { exit_code: integer|nil, skip: string[]|nil, timeout: number|nil }|nil
function M.reason(reason)
  local overrides = config.get("shutdown.reasons")
  if not reason or type(overrides) ~= "table" or next(overrides) == nil then return nil end
  if overrides[reason.kind] then return overrides[reason.kind] end
  for kind, override in pairs(overrides) do
    if reason:is(kind) then return override end
  end
end

-- At most what the platform gives, less a second for the last words.
local function within_grace(total)
  local grace = config.get("shutdown.grace")
  if not grace then return total end
  return math.max(1, math.min(total, grace - (config.get("shutdown.prestop") or 0) - 1))
end

local function seconds(value, what)
  if value == nil or type(value) == "number" then return value end
  return require("moontide.duration").check(value, what, 2)
end

--- The total of the shutdown, with the platform's grace period and without a reason.
---@return number seconds
function M.shutdown_total()
  return within_grace(core.host.options.shutdown_timeout or config.get("shutdown.timeout"))
end

---@param reason moontide.Reason|nil
---@return { total: number, reserve: number, skip: table|nil, parallel: boolean }
function M.shutdown(reason)
  local override = M.reason(reason) or {}
  local total = M.shutdown_total()
  if override.timeout then
    total = within_grace(seconds(override.timeout, "shutdown.reasons timeout"))
  end
  local skip
  for _, name in ipairs(override.skip or {}) do
    skip = skip or {}
    skip[name] = true
  end
  return {
    total = total, reserve = M.reserve(total), skip = skip,
    parallel = config.get("shutdown.parallel") or false,
  }
end

---@return { total: number, reserve: number, parallel: boolean }
function M.startup()
  local total = core.host.options.startup_timeout or config.get("startup.timeout")
  return {
    total = total, reserve = M.reserve(total), parallel = config.get("startup.parallel") or false,
  }
end

return M
