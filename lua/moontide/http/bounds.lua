--- The limits and timeouts of one listener, as `tide.http.listen` is given them: the same keys and
--- the same spellings as in the configuration.

local schema = require "moontide.config.schema"
local suggest = require "moontide.suggest"
local types = require "moontide.config.types"

local M = {}

local function row_of(name)
  for _, row in ipairs(schema.keys) do
    if row[1] == name then return row end
  end
end

--- Reads a table of them; raises for what cannot be.
---@param given table
---@param group "limits"|"timeouts"
---@param known string[] its keys
---@param level integer whom an error blames
---@return table<string, number> sizes in bytes, times in seconds
function M.read(given, group, known, level)
  local allowed, read = {}, {}
  for _, key in ipairs(known) do allowed[key] = true end
  for key, value in pairs(given) do
    if not allowed[key] then
      error(suggest.unknown("key of " .. group, tostring(key), known), level + 1)
    end
    local row = row_of(group .. "." .. key)
    local parsed, problem = types[row[2]](value, row[4])
    if parsed == nil then
      error(("tide.http.listen: %s.%s: %s"):format(group, key, problem), level + 1)
    end
    read[key] = parsed
  end
  return read
end

return M
