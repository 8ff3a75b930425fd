--- Checking the options table of a public function: unknown keys, types, durations.

local suggest = require "moontide.suggest"

local M = {}

local function fail(what, message, level)
  error(("%s: %s"):format(what, message), level + 2)
end

local CHECKS = {
  duration = function(value, what, level)
    local seconds, message = require("moontide.duration").parse(value, what)
    if not seconds then error(message, level + 3) end
    if seconds == 0 then error(what .. " must be above 0", level + 3) end
    return seconds
  end,
  count = function(value, what, level)
    local n = math.tointeger(value)
    if not n or n < 1 then
      error(("%s must be a whole number from 1 on"):format(what), level + 3)
    end
    return n
  end,
}

local function check_value(spec, value, what, level)
  local check = CHECKS[spec]
  if check then return check(value, what, level + 1) end
  for kind in spec:gmatch "[^|]+" do
    if type(value) == kind then return value end
  end
  error(("%s must be a %s, not a %s"):format(what, spec:gsub("|", " or a "), type(value)), level + 2)
end

--- Checks `opts` against `specs` and fills in defaults.
---@param what string how the message begins: 'component "db"'
---@param opts table|nil
---@param specs table<string, string> key -> "duration", "count", or types ("function|table")
---@param defaults table
---@param level integer as for error: 2 blames the caller of the caller
---@return table checked a new table, durations in seconds
function M.check(what, opts, specs, defaults, level)
  if opts ~= nil and type(opts) ~= "table" then
    fail(what, ("the options must be a table, not a %s"):format(type(opts)), level)
  end
  local out = {}
  for key, value in pairs(defaults) do out[key] = value end
  for key, value in pairs(opts or {}) do
    local spec = specs[key]
    if not spec then
      local names = {}
      for name in pairs(specs) do names[#names + 1] = tostring(name) end
      table.sort(names)
      fail(what, suggest.unknown("option", tostring(key), names), level)
    end
    out[key] = check_value(spec, value, ("%s: %s"):format(what, key), level)
  end
  return out
end

--- Checks that a name is a string with something in it.
function M.name(what, name, level)
  if type(name) ~= "string" or name == "" then
    fail(what, "the name must be a string that is not empty", level)
  end
end

--- Checks that a function was given.
function M.fn(what, fn, level)
  if type(fn) ~= "function" then
    fail(what, ("a function is wanted, not a %s"):format(type(fn)), level)
  end
end

return M
