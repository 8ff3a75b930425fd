--- JSON for the host and its scripts: exact integers, stable output.
--- Decoding is lua-cjson's work, with settings of our own that a script cannot change; encoding the
--- core's, for cjson writes at most 14 digits and cannot tell an empty list from an empty object.
--- Both are loaded by who needs them first.
local M = {}

--- Stands for JSON's null, in both directions. It is true in a condition.
M.null = setmetatable({}, { __name = "json.null", __tostring = function() return "null" end })

local ARRAY = { __name = "json.array" }

--- Marks a table as a list, so that an empty one is written as `[]`.
---@generic T: table
---@param list T
---@return T list the same table
function M.array(list)
  return setmetatable(list, ARRAY)
end

--- The text of a value. Keys are sorted by their bytes; a table is a list when its keys are 1 to n.
--- Metamethods are not asked. Strings that are not UTF-8 are repaired with U+FFFD. Raises for what
--- JSON cannot say: NaN, infinities, holes, mixed keys, functions, cycles, more than 100 levels,
--- and for more members than Lua's stack takes, nearly a million; the message names the place.
---@param value any
---@return string
function M.encode(value)
  M.encode = require("moontide.core.json").encoder(M.null, ARRAY)
  return M.encode(value)
end

--- The value of a text, or nil and a message. Integers of 64 bits are exact; larger numbers become
--- floats. Empty lists are marked as with `json.array`.
---@param text string
---@return any value
---@return string? message
function M.decode(text)
  M.decode = require("moontide.json.decoder").decode
  return M.decode(text)
end

return M
