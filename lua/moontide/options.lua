--- Checking what a public function is given: names, functions, and the options table with its keys,
--- types and durations. Every error names the script's line.

local fail = require("moontide.site").fail
local suggest = require "moontide.suggest"

local M = {}

local CHECKS = {
  duration = function(value, what)
    local seconds, message = require("moontide.duration").parse(value, what)
    if not seconds then fail(message) end
    if seconds == 0 then fail(what .. " must be above 0") end
    return seconds
  end,
  count = function(value, what)
    local n = math.tointeger(value)
    if not n or n < 1 then fail(("%s must be a whole number from 1 on"):format(what)) end
    return n
  end,
}

local function check_value(spec, value, what)
  local check = CHECKS[spec]
  if check then return check(value, what) end
  for kind in spec:gmatch "[^|]+" do
    if type(value) == kind then return value end
  end
  fail(("%s must be a %s, not a %s"):format(what, spec:gsub("|", " or a "), type(value)))
end

--- Checks `opts` against `specs` and fills in defaults.
---@param what string how the message begins: 'component "db"'
---@param opts table|nil
---@param specs table<string, string> key -> "duration", "count", or types ("function|table")
---@param defaults table
---@return table checked a new table, durations in seconds
function M.check(what, opts, specs, defaults)
  if opts ~= nil and type(opts) ~= "table" then
    fail(("%s: the options must be a table, not a %s"):format(what, type(opts)))
  end
  local out = {}
  for key, value in pairs(defaults) do out[key] = value end
  for key, value in pairs(opts or {}) do
    local spec = specs[key]
    if not spec then
      fail(what .. ": " .. suggest.unknown("option", tostring(key), suggest.names(specs)))
    end
    out[key] = check_value(spec, value, ("%s: %s"):format(what, key))
  end
  return out
end

--- Checks that a name is a string with something in it.
---@param what string
---@param name any
function M.name(what, name)
  if type(name) ~= "string" or name == "" then
    fail(what .. ": the name must be a string that is not empty")
  end
end

--- Checks that a function was given.
---@param what string
---@param fn any
function M.fn(what, fn)
  if type(fn) ~= "function" then
    fail(("%s: a function is wanted, not a %s"):format(what, type(fn)))
  end
end

return M
