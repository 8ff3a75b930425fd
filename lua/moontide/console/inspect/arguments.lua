--- What a command of the console was given: refused with the nearest right name when it is wrong.
--- Errors have no place: they are the answer to what somebody typed.
local suggest = require "moontide.suggest"

local M = {}

local function refuse(message, ...)
  error(message:format(...), 0)
end

local function check_rows(command, value, most)
  local n = math.tointeger(value)
  if not n or n < 1 or n > most then
    refuse("%s: max is a whole number from 1 to %d", command, most)
  end
  return n
end

--- Options of a command: `max` is how many rows it shows, others are texts.
---@param command string
---@param opts table|nil
---@param specs table<string, string|table> name -> "text", or { max = default, most = n }
---@return table
function M.options(command, opts, specs)
  if opts ~= nil and type(opts) ~= "table" then
    refuse("%s: a table of options is wanted, as %s { %s = ... }, not a %s", command, command,
      suggest.names(specs)[1], type(opts))
  end
  local out = {}
  for name, spec in pairs(specs) do
    if type(spec) == "table" then out[name] = spec.default end
  end
  for name, value in pairs(opts or {}) do
    local spec = specs[name]
    if not spec then
      refuse("%s: %s", command, suggest.unknown("option", tostring(name), suggest.names(specs)))
    elseif type(spec) == "table" then
      out[name] = check_rows(command, value, spec.most)
    elseif type(value) ~= "string" or value == "" then
      refuse("%s: %s is a text", command, name)
    else
      out[name] = value
    end
  end
  return out
end

--- Raises unless the command was given nothing.
---@param command string
function M.none(command, ...)
  if select("#", ...) > 0 and (...) ~= nil then
    refuse("%s() takes no argument, not a %s", command, type((...)))
  end
end

return M
