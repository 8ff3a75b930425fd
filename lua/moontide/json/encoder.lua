--- Writes values as JSON text. See moontide.json for what it promises.
local text_of = require "moontide.text"

local M = {}

local MAX_DEPTH = 100

local format, find, gsub = string.format, string.find, string.gsub
local math_type, huge = math.type, math.huge
local getmetatable = getmetatable

M.null = setmetatable({}, { __name = "json.null", __tostring = function() return "null" end })

local ARRAY = { __name = "json.array" }

function M.array(list)
  return setmetatable(list, ARRAY)
end

--- Where in the value we are: the keys from the root down, for messages.
local function place(path)
  local parts = {}
  for i = 1, path.depth do
    local key = path[i]
    if type(key) == "number" then
      parts[i] = format("[%d]", key)
    else
      parts[i] = (i > 1 and "." or "") .. key
    end
  end
  return path.depth == 0 and "the top" or table.concat(parts)
end

local function refuse(path, message)
  error(format("json.encode: %s at %s", message, place(path)), 0)
end

local ESCAPES = {
  ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r",
  ["\t"] = "\\t",
}

local function escape(char)
  return ESCAPES[char] or format("\\u%04x", char:byte())
end

local function encode_string(text)
  if not find(text, "[%c\"\\\128-\255]") then return '"' .. text .. '"' end
  return '"' .. gsub(text_of.repair(text), "[%c\"\\]", escape) .. '"'
end

local function encode_number(number, path)
  if math_type(number) == "integer" then return format("%d", number) end
  if number ~= number or number == huge or number == -huge then
    refuse(path, format("%s has no form in JSON", number ~= number and "NaN" or "an infinity"))
  end
  return text_of.float(number)
end

--- Its keys when it is an object, nil when it is a list (an empty one is an object unless marked).
local function object_keys(value, path)
  local marked = getmetatable(value) == ARRAY
  local length, count, keys = #value, 0, {}
  local strings, numbers
  for key in next, value do
    count = count + 1
    if type(key) == "string" then
      strings = true
      keys[count] = key
    elseif math_type(key) == "integer" then
      numbers = true
      if key < 1 or key > length then
        refuse(path, format("a list with a hole or a gap (index %d beyond %d)", key, length))
      end
    else
      refuse(path, format("a key that is a %s", type(key)))
    end
  end
  if strings and (numbers or marked) then
    refuse(path, "a table with both list and named entries")
  end
  if numbers and count ~= length then refuse(path, "a list with a hole") end
  if numbers or marked then return nil end
  table.sort(keys)
  return keys
end

local encode_value

local function encode_list(value, out, path)
  local depth = path.depth
  out[#out + 1] = "["
  for i = 1, #value do
    if i > 1 then out[#out + 1] = "," end
    path[depth] = i
    encode_value(value[i], out, path)
  end
  out[#out + 1] = "]"
end

local function encode_object(value, keys, out, path)
  local depth = path.depth
  out[#out + 1] = "{"
  for i = 1, #keys do
    local key = keys[i]
    out[#out + 1] = (i > 1 and "," or "") .. encode_string(key) .. ":"
    path[depth] = key
    encode_value(value[key], out, path)
  end
  out[#out + 1] = "}"
end

local function encode_table(value, out, path)
  if value == M.null then
    out[#out + 1] = "null"
    return
  end
  if path.open[value] then refuse(path, "a cycle") end
  if path.depth >= MAX_DEPTH then refuse(path, format("more than %d levels", MAX_DEPTH)) end
  local keys = object_keys(value, path)
  path.open[value] = true
  path.depth = path.depth + 1
  if keys then
    encode_object(value, keys, out, path)
  else
    encode_list(value, out, path)
  end
  path.depth = path.depth - 1
  path.open[value] = nil
end

--- cjson's null is the light userdata NULL, and so is that of other libraries.
local function is_foreign_null(value)
  return type(value) == "userdata" and tostring(value) == "userdata: (nil)"
end

function encode_value(value, out, path)
  local kind = type(value)
  if kind == "string" then
    out[#out + 1] = encode_string(value)
  elseif kind == "number" then
    out[#out + 1] = encode_number(value, path)
  elseif kind == "table" then
    encode_table(value, out, path)
  elseif kind == "boolean" then
    out[#out + 1] = value and "true" or "false"
  elseif kind == "nil" or is_foreign_null(value) then
    out[#out + 1] = "null"
  else
    refuse(path, format("a %s has no form in JSON", kind))
  end
end

---@param value any
---@return string
function M.encode(value)
  local out = {}
  encode_value(value, out, { depth = 0, open = {} })
  return table.concat(out)
end

return M
