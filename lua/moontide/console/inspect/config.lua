--- `config()`: the settings as they are, where each comes from, secrets masked.
local config = require "moontide.config"
local json = require "moontide.json"
local view = require "moontide.view"

local M = {}

---@class moontide.inspect.Setting
---@field key string
---@field value string as a person writes it; "unset" without one
---@field origin string

local function wanted(key, prefix)
  return not prefix or key == prefix or key:sub(1, #prefix + 1) == prefix .. "."
end

local function render(data)
  local rows = {}
  for i, row in ipairs(data.settings) do rows[i] = { row.key, row.value, row.origin } end
  return view.columns({ "setting", "value", "from" }, rows)
end

--- All settings, one, or those of a group: `config "shutdown"`.
---@param prefix string|nil
---@return { settings: moontide.inspect.Setting[] }
function M.config(prefix)
  if prefix ~= nil and (type(prefix) ~= "string" or prefix == "") then
    error("config(key): the name of a setting or of a group of them is wanted", 0)
  end
  local list = json.array {}
  for key, value, origin in config.explain() do
    if wanted(key, prefix) then list[#list + 1] = { key = key, value = value, origin = origin } end
  end
  if #list == 0 then error("config: " .. require("moontide.config.keys").unknown(prefix), 0) end
  return view.new({ settings = list }, render)
end

return M
