--- Writes values as JSON text. See moontide.json for what it promises.
local text_of = require "moontide.text"

local M = {}

local MAX_DEPTH = 100

local format, find, gsub = string.format, string.find, string.gsub
local math_type, huge = math.type, math.huge
local getmetatable, concat, sort = getmetatable, table.concat, table.sort

M.null = setmetatable({}, { __name = "json.null", __tostring = function() return "null" end })

local ARRAY = { __name = "json.array" }

function M.array(list)
  return setmetatable(list, ARRAY)
end

-- The state of one encoding: the pieces of text so far (1 to n), and where in the value we are (the
-- keys from the root down, for messages and against cycles).
local function new_state()
  return { n = 0, depth = 0, keys = {}, open = {}, key_texts = {} }
end

local function place(state)
  local parts = {}
  for i = 1, state.depth do
    local key = state.keys[i]
    if type(key) == "number" then
      parts[i] = format("[%d]", key)
    else
      parts[i] = (i > 1 and "." or "") .. key
    end
  end
  return state.depth == 0 and "the top" or concat(parts)
end

local function refuse(state, message)
  error(format("json.encode: %s at %s", message, place(state)), 0)
end

local function put(state, text)
  local n = state.n + 1
  state[n], state.n = text, n
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

local function encode_number(number, state)
  if math_type(number) == "integer" then return format("%d", number) end
  if number ~= number or number == huge or number == -huge then
    refuse(state, format("%s has no form in JSON", number ~= number and "NaN" or "an infinity"))
  end
  return text_of.float(number)
end

-- ---- tables -------------------------------------------------------------------------------------

-- Says what is wrong with the keys of a table that is neither a list nor an object.
local function refuse_keys(value, state)
  local length, named = #value, false
  for key in next, value do
    local kind = type(key)
    if kind == "string" then
      named = true
    elseif math_type(key) ~= "integer" then
      refuse(state, format("a key that is a %s", kind))
    elseif key < 1 or key > length then
      refuse(state, format("a list with a hole or a gap (index %d beyond %d)", key, length))
    end
  end
  refuse(state, named and "a table with both list and named entries" or "a list with a hole")
end

-- Its keys, sorted, when it is an object; nil when it is a list. An empty table is an object unless
-- it is marked.
local function object_keys(value, state)
  local keys, count = {}, 0
  for key in next, value do
    count = count + 1
    if type(key) ~= "string" then
      if count > 1 then refuse_keys(value, state) end
      return nil
    end
    keys[count] = key
  end
  if getmetatable(value) == ARRAY then
    if count > 0 then refuse_keys(value, state) end
    return nil
  end
  if count > 1 then sort(keys) end
  return keys
end

local encode_value

-- The keys of a list are 1 to its length, and nothing else.
local function check_list(value, state)
  local length, count = #value, 0
  for key in next, value do
    count = count + 1
    if math_type(key) ~= "integer" or key < 1 or key > length then refuse_keys(value, state) end
  end
  if count ~= length then refuse_keys(value, state) end
end

local function encode_list(value, state)
  local depth, length = state.depth, #value
  put(state, "[")
  for i = 1, length do
    if i > 1 then put(state, ",") end
    state.keys[depth] = i
    encode_value(value[i], state)
  end
  put(state, "]")
end

-- `"key":`, made once for each key of an encoding.
local function key_text(state, key)
  local text = state.key_texts[key]
  if not text then
    text = encode_string(key) .. ":"
    state.key_texts[key] = text
  end
  return text
end

local function encode_object(value, keys, state)
  local depth = state.depth
  put(state, "{")
  for i = 1, #keys do
    local key = keys[i]
    if i > 1 then put(state, ",") end
    put(state, key_text(state, key))
    state.keys[depth] = key
    encode_value(value[key], state)
  end
  put(state, "}")
end

local function encode_table(value, state)
  if value == M.null then return put(state, "null") end
  if state.open[value] then refuse(state, "a cycle") end
  if state.depth >= MAX_DEPTH then refuse(state, format("more than %d levels", MAX_DEPTH)) end
  local keys = object_keys(value, state)
  if not keys then check_list(value, state) end
  state.open[value] = true
  state.depth = state.depth + 1
  if keys then
    encode_object(value, keys, state)
  else
    encode_list(value, state)
  end
  state.depth = state.depth - 1
  state.open[value] = nil
end

--- cjson's null is the light userdata NULL, and so is that of other libraries.
local function is_foreign_null(value)
  return type(value) == "userdata" and tostring(value) == "userdata: (nil)"
end

function encode_value(value, state)
  local kind = type(value)
  if kind == "string" then
    put(state, encode_string(value))
  elseif kind == "number" then
    put(state, encode_number(value, state))
  elseif kind == "table" then
    encode_table(value, state)
  elseif kind == "boolean" then
    put(state, value and "true" or "false")
  elseif kind == "nil" or is_foreign_null(value) then
    put(state, "null")
  else
    refuse(state, format("a %s has no form in JSON", kind))
  end
end

---@param value any
---@return string
function M.encode(value)
  local state = new_state()
  encode_value(value, state)
  return concat(state, "", 1, state.n)
end

return M
