--- Retry policies: how long to wait after the n-th failure, and when to give up.
--- Pure: it neither sleeps nor reads a clock. `tide.retry{...}` makes a policy.
local duration = require("moontide.duration")
local suggest = require("moontide.suggest")

local M = {}

---@class tide.RetryPolicy
---@field base number seconds before the second attempt
---@field max number longest wait, seconds
---@field factor number each wait is this many times the one before
---@field jitter number 0 to 1: part of a wait that is random
---@field attempts integer|nil tries in all, the first one included
---@field give_up_after number|nil seconds for all attempts and waits
local Policy = {}
Policy.__index = Policy

local OPTIONS = { "base", "max", "factor", "jitter", "attempts", "give_up_after" }

local function check_keys(options, level)
  for key in pairs(options) do
    local known = false
    for _, name in ipairs(OPTIONS) do known = known or name == key end
    if not known then error("retry: " .. suggest.unknown("option", key, OPTIONS), level + 1) end
  end
end

local function is_number(value, least, most)
  return type(value) == "number" and value >= least and value <= most
end

--- Makes a policy; raises at `level` for an option that is unknown or wrong.
---@param options? table base, max, give_up_after (durations), factor, jitter, attempts
---@param level? integer 1: the caller
---@return tide.RetryPolicy
function M.new(options, level)
  level = (level or 1) + 1
  if options == nil then options = {} end
  if type(options) ~= "table" then error("retry: options are a table", level) end
  check_keys(options, level)
  local function seconds(key, default)
    local value = options[key]
    if value == nil then return default end
    local parsed, message = duration.parse(value, "retry." .. key)
    if not parsed then error(message, level + 1) end
    return parsed
  end
  local policy = {
    base = seconds("base", 1),
    factor = options.factor == nil and 2 or options.factor,
    jitter = options.jitter == nil and 0 or options.jitter,
    attempts = options.attempts,
    give_up_after = seconds("give_up_after"),
  }
  policy.max = seconds("max", math.max(30, policy.base))
  if not is_number(policy.factor, 1, math.huge) or policy.factor == math.huge then
    error("retry.factor is a finite number of at least 1", level)
  end
  if not is_number(policy.jitter, 0, 1) then
    error("retry.jitter is a number from 0 to 1", level)
  end
  if policy.attempts ~= nil
    and (math.type(policy.attempts) ~= "integer" or policy.attempts < 1) then
    error("retry.attempts is an integer of at least 1 (the first try counts)", level)
  end
  if policy.max < policy.base then error("retry.max is shorter than retry.base", level) end
  return setmetatable(policy, Policy)
end

---@param value any
---@return boolean
function M.is_policy(value)
  return getmetatable(value) == Policy
end

--- The wait after the n-th failure without its random part.
local function plain_delay(policy, n)
  if policy.base == 0 then return 0 end
  -- The power overflows to infinity long before n is absurd; max cuts it.
  return math.min(policy.base * policy.factor ^ (n - 1), policy.max)
end

--- Seconds to wait after the n-th failure (n = 1: after the first). With jitter
--- j it is between (1 - j) of the plain wait and the whole of it: never above max.
---@param n integer
---@param random? fun(): number 0 to 1; default math.random
---@return number seconds
function Policy:delay(n, random)
  local wait = plain_delay(self, n)
  if self.jitter == 0 then return wait end
  return wait * (1 - self.jitter * (random or math.random)())
end

--- Whether to give up after the n-th failure, `elapsed` seconds after the first
--- attempt began. A wait that would outlast `give_up_after` is not begun.
---@param n integer
---@param elapsed number
---@return boolean
---@return string? why
function Policy:exhausted(n, elapsed)
  if self.attempts and n >= self.attempts then
    return true, ("%d of %d attempts failed"):format(n, self.attempts)
  end
  local limit = self.give_up_after
  if limit and elapsed + plain_delay(self, n) >= limit then
    return true, ("no time for another attempt within %s"):format(duration.format(limit))
  end
  return false
end

--- Seconds that all attempts take at most, each attempt taking up to `timeout`.
--- Infinite for a policy without `attempts` and `give_up_after`.
---@param timeout number
---@return number seconds
function Policy:worst_case(timeout)
  local limit = self.give_up_after or math.huge
  if not self.attempts then return limit end
  local total = timeout
  for n = 1, self.attempts - 1 do
    total = total + plain_delay(self, n) + timeout
    if total >= limit then return limit end
  end
  return math.min(total, limit)
end

function Policy:__tostring()
  local parts = { "base " .. duration.format(self.base), "max " .. duration.format(self.max) }
  if self.attempts then parts[#parts + 1] = ("%d attempts"):format(self.attempts) end
  if self.give_up_after then
    parts[#parts + 1] = "give up after " .. duration.format(self.give_up_after)
  end
  return ("retry (%s)"):format(table.concat(parts, ", "))
end

--- An error that no retry can mend.
---@class tide.PermanentError
---@field kind "permanent"
---@field cause any
local Permanent = {}
Permanent.__index = Permanent
Permanent.__tostring = function(self) return tostring(self.cause) end

--- Marks an error: `error(tide.permanent("wrong password"))` is not retried.
---@param cause any
---@return tide.PermanentError
function M.permanent(cause)
  if M.is_permanent(cause) then return cause end
  return setmetatable({ kind = "permanent", cause = cause, message = tostring(cause) }, Permanent)
end

---@param value any
---@return boolean
function M.is_permanent(value)
  return getmetatable(value) == Permanent
end

return setmetatable(M, {
  __call = function(_, options)
    local policy = M.new(options, 2) -- no tail call: errors count the levels
    return policy
  end,
})
