--- The names of settings: which exist, which was meant, what they are called in
--- the environment. Pure; beside `config`, which holds the values.
local schema = require("moontide.config.schema")

local M = {}

---@type table<string, table> key -> row of the schema
M.rows = {}
---@type table<string, boolean> "shutdown", "shutdown.phases": what holds keys
M.groups = schema.groups
--- Groups whose next part is a name the user chooses.
M.named = schema.named

for _, row in ipairs(schema.keys) do M.rows[row[1]] = row end

--- The row of `shutdown.phases.NAME.timeout`, or nil.
function M.named_row(key)
  local dot = key:find(".", 1, true)
  dot = dot and key:find(".", dot + 1, true)
  local group = dot and key:sub(1, dot - 1)
  local named = group and schema.named[group]
  if not named then return nil end
  local name, field = key:match("^(.+)%.([^.]+)$", dot + 1)
  for _, row in ipairs(named) do
    if row[1] == field then return row, group, name, field end
  end
end

--- The row of any key, or nil.
---@param key string
function M.row_of(key)
  return M.rows[key] or (M.named_row(key))
end

--- All keys but those under chosen names, in the order of the schema.
---@return string[]
function M.names()
  local names = {}
  for i, row in ipairs(schema.keys) do names[i] = row[1] end
  return names
end

--- "unknown key ..." with the nearest right one, spelled by `spell`.
---@param key string
---@param spell? fun(key: string): string
---@return string message
function M.unknown(key, spell)
  return require("moontide.config.unknown")(key, spell)
end

--- What a key is called in the environment.
---@param key string
---@return string
function M.env_name(key)
  local name = key:upper():gsub("%.", "__"):gsub("-", "_")
  return "MOONTIDE_" .. name
end

--- MOONTIDE_SHUTDOWN__PHASES__SERVICE_STOP__TIMEOUT -> shutdown.phases.service-stop.timeout
---@param name string
---@return string|nil key nil: not one of ours
function M.from_env(name)
  if schema.short_names[name] then return schema.short_names[name] end
  local rest = name:match("^MOONTIDE_(.+)$")
  if not rest or not rest:find("[^_]__[^_]") then return nil end
  local key = rest:lower():gsub("__", ".")
  return (key:gsub("^(%a+%.%a+)%.(.+)%.([^.]+)$", function(group, chosen, field)
    -- A shell variable cannot hold the hyphens that names here have.
    if schema.named[group] then
      return ("%s.%s.%s"):format(group, chosen:gsub("_", "-"), field)
    end
  end))
end

return M
