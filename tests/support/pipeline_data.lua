--- The cases of tests/data/pipeline-cases.json. Each has a status: run, adapted or skipped, the
--- last two with a reason (why).
local M = {}

local function read()
  local here = debug.getinfo(1, "S").source:match "^@(.*)support/[^/]*$"
  local file = assert(io.open(here .. "data/pipeline-cases.json", "rb"))
  local text = file:read "a"
  file:close()
  return require("cjson").new().decode(text)
end

local data

--- The names of all sections, that is of all lists of the file.
---@return table<string, true>
function M.sections()
  data = data or read()
  local names = {}
  for name, value in pairs(data) do names[name] = value[1] and true or nil end
  return names
end

--- The cases of "topo", "run", "config", "watch" or "signals".
---@param name string
---@return table[]
function M.section(name)
  data = data or read()
  return data[name]
end

return M
