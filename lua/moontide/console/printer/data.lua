--- A value as JSON can say it: tables, strings, numbers, booleans and null.
--
-- Within the limits of the console, what was left out is said inside the data: a string ends with
-- "... 12 more bytes", a list has a last item and an object a member "..." that says how many more
-- there are. A value that shows itself (`__console`: what commands return) is data made to be read
-- by programs, so it has wider limits.
local entries = require "moontide.console.printer.entries"
local json = require "moontide.json"
local metamethod = require "moontide.console.printer.metamethod"
local scalars = require "moontide.console.printer.scalars"
local text_of = require "moontide.text"

local M = {}

---@type moontide.console.Limits
M.wide = { depth = 8, items = 1000, string = 4096, bytes = 512 * 1024 }

local ARRAY = debug.getmetatable(json.array {})

local function string_data(text, limit)
  local shown, left_out = scalars.cut(text, limit)
  shown = text_of.repair(shown)
  return left_out == 0 and shown or ("%s... %d more bytes"):format(shown, left_out)
end

local function number_data(number)
  if number ~= number or number == math.huge or number == -math.huge then
    return scalars.number(number)
  end
  return number
end

local function scalar(state, value)
  local kind = type(value)
  if kind == "string" then return string_data(value, state.limits.string) end
  if kind == "number" then return number_data(value) end
  if kind == "boolean" then return value end
  if kind == "nil" or (kind == "userdata" and ("%p"):format(value) == "(null)") then
    return json.null
  end
  if kind == "function" and not state.names then state.names = scalars.function_names() end
  return scalars.text(value, state.names)
end

-- Keys that are no strings stand in brackets: `[1]`.
local function key_data(state, key, taken)
  local text
  if type(key) == "string" then
    text = string_data(key, state.limits.string)
  elseif type(key) == "table" then
    text = ("[table %p]"):format(key)
  else
    text = "[" .. scalars.text(key, state.names) .. "]"
  end
  while taken[text] ~= nil do text = text .. "'" end
  return text
end

local convert

-- What a string takes as JSON; all else takes less than FIXED.
local FIXED = 28

local function cost(data)
  if type(data) ~= "string" then return FIXED end
  local _, escaped = data:gsub("[%c\"\\]", "")
  return #data + 5 * escaped + 3
end

local function list_data(state, value, shown, depth)
  local list = json.array {}
  for i = 1, shown.list do
    if state.left <= 0 then
      return list, shown.more + shown.list - i + 1 + #shown.keys
    end
    state.walk.give_way()
    list[i] = convert(state, rawget(value, i), depth)
  end
  return list, shown.more
end

local function object_data(state, value, shown, depth)
  local object, keys = {}, {}
  for i = 1, shown.list do keys[i] = i end
  table.move(shown.keys, 1, #shown.keys, #keys + 1, keys)
  for i, key in ipairs(keys) do
    if state.left <= 0 then return object, shown.more + #keys - i + 1 end
    state.walk.give_way()
    local name = key_data(state, key, object)
    state.left = state.left - cost(name)
    object[name] = convert(state, rawget(value, key), depth)
  end
  return object, shown.more
end

local function is_list(value, shown)
  if #shown.keys > 0 then return false end
  return shown.list > 0 or rawequal(debug.getmetatable(value), ARRAY)
end

local function table_data(state, value, depth)
  if state.open[value] then return "<cycle>" end
  if depth >= state.limits.depth then
    local count, at_least = entries.count(value, state.walk)
    if count > 0 then return ("{ ... %s }"):format(entries.more(count, at_least)) end
  end
  local shown = entries.of(value, state.limits.items, state.walk)
  local as_list = is_list(value, shown)
  state.open[value] = true
  local data, left_out = (as_list and list_data or object_data)(state, value, shown, depth + 1)
  state.open[value] = nil
  if left_out == 0 and not shown.at_least then return data end
  local more = entries.more(left_out, shown.at_least)
  if as_list then
    data[#data + 1] = "... " .. more
  else
    data[key_data(state, "...", data)] = more
  end
  return data
end

function convert(state, value, depth)
  local kind = type(value)
  if rawequal(value, json.null) then return value end
  if kind == "table" or kind == "userdata" then
    local text = metamethod.text(state.budget, value, "__tostring")
    if text then value, kind = text, "string" end
  end
  if kind == "table" then
    state.left = state.left - FIXED -- its brackets, and that some were left out
    return table_data(state, value, depth)
  end
  local data = scalar(state, value)
  state.left = state.left - cost(data)
  return data
end

-- Data that is made to be read by programs.
local function is_wide(value)
  local meta = type(value) == "table" and debug.getmetatable(value)
  return meta and rawget(meta, "__console") ~= nil
end

local function converting(limits, give_way)
  return {
    limits = limits, open = {}, left = limits.bytes, walk = entries.walk(give_way),
    budget = metamethod.budget(),
  }
end

--- The data of one value.
---@param value any
---@param limits moontide.console.Limits all of them
---@param give_way fun()|nil see moontide.console.Walk
---@return any
function M.of(value, limits, give_way)
  return convert(converting(is_wide(value) and M.wide or limits, give_way), value, 0)
end

--- The data of several results; all together keep the limit of one value.
---@param packed { n: integer, [integer]: any }
---@param limits moontide.console.Limits all of them
---@param give_way fun()|nil
---@return any nil of none; of one itself; else a list
function M.all(packed, limits, give_way)
  if packed.n == 0 then return nil end
  if packed.n == 1 then return M.of(packed[1], limits, give_way) end
  local state, list = converting(limits, give_way), json.array {}
  for i = 1, packed.n do
    if i > limits.items or state.left <= 0 then
      list[i] = "... " .. entries.more(packed.n - i + 1, false)
      break
    end
    list[i] = convert(state, packed[i], 0)
  end
  return list
end

return M
