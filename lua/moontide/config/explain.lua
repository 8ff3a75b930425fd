--- The settings as a person reads them: each with its value and where that comes from.
local duration = require("moontide.duration")
local keys = require("moontide.config.keys")

local function shown(row, value)
  if value == nil then return "unset" end
  if row.secret then return "********" end
  local kind = row[2]
  if kind == "duration" or kind == "positive" or kind == "total" or kind == "phase_timeout" then
    return duration.format(value)
  end
  if type(value) == "table" and not getmetatable(value) then return table.concat(value, ", ") end
  return tostring(value)
end

---@param config table `moontide.config`
---@param entries table<string, tide.config.Entry> those that were set
---@return fun(): string|nil, string|nil, string|nil key, value as text (secrets masked), origin
return function(config, entries)
  local names, chosen = keys.names(), {}
  for key in pairs(entries) do
    if not keys.rows[key] then chosen[#chosen + 1] = key end
  end
  table.sort(chosen)
  table.move(chosen, 1, #chosen, #names + 1, names)
  local i = 0
  return function()
    i = i + 1
    local key = names[i]
    if key then return key, shown(keys.row_of(key), config.get(key)), config.origin(key) end
  end
end
