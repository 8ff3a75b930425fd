--- Reads JSON text with lua-cjson, and mends what that loses: every number comes as a float, and
--- an empty list as an empty table. Both are taken care of by marking them in the text first, as
--- strings that begin with a byte no valid text can contain.
local cjson = require "cjson"
local json = require "moontide.json"

local M = {}

local MAX_DEPTH = 100
local MARK = "\xFF"

-- An instance of our own: what a script sets on require "cjson" does not reach it.
local reader = cjson.new()
reader.decode_invalid_numbers(false)
reader.decode_max_depth(MAX_DEPTH)

local find, match, sub = string.find, string.match, string.sub
local tointeger, huge = math.tointeger, math.huge

--- The position after the string that begins at `at`; past the end when it is not closed.
local function after_string(text, at)
  local pos = at + 1
  while true do
    local stop = find(text, '["\\]', pos)
    if not stop then return #text + 1 end
    if sub(text, stop, stop) == '"' then return stop + 1 end
    pos = stop + 2
  end
end

--- What stands at `at` in place of itself, and where it ends; nil when it can stay.
local function replacement(text, at)
  local stop = match(text, "^%[[ \t\r\n]*%]()", at)
  local mark = MARK
  if not stop then
    local digits
    digits, stop = match(text, "^(%-?%d[%d.eE+-]*)()", at)
    if not digits then return nil, at + 1 end
    if #digits < 16 or not find(digits, "^%-?[1-9]%d*$") then return nil, stop end
    mark = MARK .. digits
  end
  -- As a key it is wrong, and must stay so.
  if find(text, "^[ \t\r\n]*:", stop) then return nil, stop end
  return '"' .. mark .. '"', stop
end

local function mark_text(text)
  local parts, from, pos = {}, 1, 1
  while true do
    local at = find(text, '["%[%d-]', pos)
    if not at then break end
    if sub(text, at, at) == '"' then
      pos = after_string(text, at)
    else
      local instead
      instead, pos = replacement(text, at)
      if instead then
        parts[#parts + 1] = sub(text, from, at - 1) .. instead
        from = pos
      end
    end
  end
  parts[#parts + 1] = sub(text, from)
  return table.concat(parts)
end

--- The mended value; raises for a number that no float holds.
local function mend(value)
  local kind = type(value)
  if kind == "number" then
    if value == huge or value == -huge then error("a number out of range", 0) end
    return tointeger(value) or value
  elseif kind == "string" then
    if sub(value, 1, 1) ~= MARK then return value end
    if value == MARK then return json.array {} end
    return tonumber(sub(value, 2))
  elseif kind == "table" then
    for key, item in next, value do value[key] = mend(item) end
    return value
  elseif value == cjson.null then
    return json.null
  end
  return value
end

local function read(text)
  if find(text, "%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d") or find(text, "%[[ \t\r\n]*%]") then
    local ok, value = pcall(reader.decode, mark_text(text))
    if ok then return mend(value) end
    -- Once more as it was given, for a message with the right position.
  end
  return mend(reader.decode(text))
end

---@param text string
---@return any value
---@return string? message
function M.decode(text)
  if type(text) ~= "string" then
    error(("json.decode: a string is wanted, not a %s"):format(type(text)), 2)
  end
  local length, bad = utf8.len(text)
  if not length then return nil, ("json.decode: byte %d is not UTF-8"):format(bad) end
  if find(text, "[\0-\8\11\12\14-\31]") then
    return nil, "json.decode: a control character that is not escaped"
  end
  local ok, value = pcall(read, text)
  if ok then return value end
  return nil, "json.decode: " .. tostring(value)
end

return M
