--- Writes values as JSON text. See moontide.json for what it promises.
local native = require "moontide.core.json"

local M = {}

M.null = setmetatable({}, { __name = "json.null", __tostring = function() return "null" end })

local ARRAY = { __name = "json.array" }

function M.array(list)
  return setmetatable(list, ARRAY)
end

---@type fun(value: any): string
M.encode = native.encoder(M.null, ARRAY)

return M
