--- How a list is read: a list, one of its items, or in a text the items between commas and blanks.

local expected = require("moontide.config.types").expected

local M = {}

local function list(value, from_text)
  if from_text and type(value) == "string" then
    local items = {}
    for item in value:gmatch("[^,%s]+") do items[#items + 1] = item end
    return items
  end
  if type(value) == "string" or type(value) == "number" then return { value } end
  return type(value) == "table" and value or nil
end

local function items(value, from_text, what, read)
  local given = list(value, from_text)
  if not given then return expected(value, "a list of " .. what) end
  local result, count = {}, 0
  for _ in pairs(given) do count = count + 1 end
  if count ~= #given then return nil, "is not a plain list" end
  for i, item in ipairs(given) do
    local parsed = read(item)
    if parsed == nil then return expected(item, "one of a list of " .. what) end
    result[i] = parsed
  end
  return result
end

--- Names.
---@param value any
---@param from_text boolean|nil
---@return string[]|nil
---@return string|nil problem
function M.texts(value, from_text)
  return items(value, from_text, "names", function(item)
    return type(item) == "string" and item ~= "" and item or nil
  end)
end

--- Users and what each may do: "1000" and 1000 look, "1000:eval" runs Lua.
---@param value any
---@param from_text boolean|nil
---@return { uid: integer, policy: "inspect"|"eval" }[]|nil
---@return string|nil problem
function M.uids(value, from_text)
  local what = "user ids: 1000, or \"1000:inspect\", \"1000:eval\""
  return items(value, from_text, what, function(item)
    local uid, policy = tostring(item):match "^(%d+):?(%a*)$"
    if policy == "" then policy = "inspect" end
    uid = math.tointeger(tonumber(uid))
    if not uid or (policy ~= "inspect" and policy ~= "eval") then return nil end
    return { uid = uid, policy = policy }
  end)
end

return M
