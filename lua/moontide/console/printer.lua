--- What the console shows of a value: readable, bounded, and always one valid UTF-8 text.
--
-- Tables are read raw. The only code of a script that runs is `__tostring`, and `__console` of a
-- value that is shown by itself; both under a budget (printer/metamethod.lua).
local entries = require "moontide.console.printer.entries"
local keywords = require("moontide.console.tokens").keywords
local metamethod = require "moontide.console.printer.metamethod"
local scalars = require "moontide.console.printer.scalars"

local M = {}

---@class moontide.console.Limits
---@field depth integer|nil levels of tables, default 4
---@field items integer|nil of one table, default 50
---@field string integer|nil bytes of one string, default 200
---@field bytes integer|nil of the whole text, default 64 KiB

---@type moontide.console.Limits
M.limits = { depth = 4, items = 50, string = 200, bytes = 64 * 1024 }

-- What fits into this many columns stands on one line.
local WIDTH = 76
-- Items of a list up to so many bytes stand beside each other.
local SHORT = 20
-- What the remark at the end of a text that was cut may take.
local REMARK = 40

---@class moontide.console.Printing one text that is being made
---@field limits moontide.console.Limits
---@field left integer bytes that may still come
---@field open table<table, integer> the tables around this place, with their level
---@field walk moontide.console.Walk steps over tables
---@field names table<function, string>|nil
---@field budget moontide.console.Budget of metamethods

-- All limits: those that are given, and the others.
local function complete(given)
  local limits = {}
  for name, value in pairs(M.limits) do limits[name] = given and given[name] or value end
  return limits
end

local function printing(given, give_way)
  local limits = complete(given)
  return {
    limits = limits, left = limits.bytes, open = {}, walk = entries.walk(give_way),
    budget = metamethod.budget(),
  }
end

local function scalar(state, value)
  local kind = type(value)
  if kind == "string" then return scalars.quote(value, state.limits.string) end
  if kind == "function" and not state.names then state.names = scalars.function_names() end
  return scalars.text(value, state.names)
end

local function key_text(state, key)
  if type(key) == "string" and key:find "^[%a_][%w_]*$" and not keywords[key]
    and #key <= state.limits.string then
    return key
  end
  if type(key) ~= "table" then return "[" .. scalar(state, key) .. "]" end
  return ("[table %p]"):format(key)
end

-- ---- tables -------------------------------------------------------------------------------------

local render

-- Adds an item to a table's; false when the text is full.
local function put(state, items, depth, text)
  if state.left <= 0 then return false end
  items[#items + 1] = text
  state.left = state.left - #text - 2 * depth - 2
  return true
end

-- The items of a table as text, and how many were left out.
local function items_of(state, value, shown, depth)
  local items, left_out = {}, shown.more
  for i = 1, shown.list do
    state.walk.give_way()
    local text = state.left > 0 and render(state, rawget(value, i), depth)
    if not text or not put(state, items, depth, text) then
      return items, left_out + shown.list - i + 1 + #shown.keys
    end
  end
  for i, key in ipairs(shown.keys) do
    state.walk.give_way()
    local text = state.left > 0 and
      key_text(state, key) .. " = " .. render(state, rawget(value, key), depth)
    if not text or not put(state, items, depth, text) then
      return items, left_out + #shown.keys - i + 1
    end
  end
  return items, left_out
end

-- Short items of a list share lines: fills up the lines of the first `count` items.
local function fill(items, count, width)
  local lines, n = {}, 0
  for i, item in ipairs(items) do
    local last = lines[n]
    if i <= count and #item <= SHORT and last and #last + #item + 2 <= width then
      lines[n] = last .. ", " .. item
    else
      n = n + 1
      lines[n] = item
    end
  end
  return lines
end

local function lay_out(items, listed, depth)
  local width = WIDTH - 2 * depth
  local text = table.concat(items, ", ")
  if #text + 4 <= width and not text:find("\n", 1, true) then return "{ " .. text .. " }" end
  text = table.concat(fill(items, listed, width - 2), ",\n")
  return "{\n  " .. text:gsub("\n", "\n  ") .. "\n}"
end

local function below_limit(state, value)
  local count, at_least = entries.count(value, state.walk)
  if count == 0 and not at_least then return "{}" end
  return ("{ ... %s }"):format(entries.more(count, at_least))
end

local function cycle(depth, opened_at)
  local levels = depth - opened_at
  return levels == 0 and "<cycle: itself>"
    or ("<cycle: %d level%s up>"):format(levels, levels == 1 and "" or "s")
end

local function render_table(state, value, depth)
  local opened_at = state.open[value]
  if opened_at then return cycle(depth, opened_at) end
  local class = scalars.class(value)
  local prefix = class and class .. " " or ""
  if depth >= state.limits.depth then return prefix .. below_limit(state, value) end
  local shown = entries.of(value, state.limits.items, state.walk)
  state.open[value] = depth + 1
  local items, left_out = items_of(state, value, shown, depth + 1)
  state.open[value] = nil
  if left_out > 0 or shown.at_least then
    items[#items + 1] = "... " .. entries.more(left_out, shown.at_least)
  end
  return prefix .. (#items == 0 and "{}" or lay_out(items, shown.list, depth))
end

-- What __tostring says; inside of a table on one line, and no longer than a string.
local function custom(state, value, depth)
  local text, remark = metamethod.text(state.budget, value, "__tostring")
  if not text then return nil, remark end
  local shown, left_out = scalars.cut(text, depth == 0 and state.limits.bytes
    or state.limits.string)
  shown = scalars.clean(shown, depth == 0)
  return left_out == 0 and shown or ("%s ... %d more bytes"):format(shown, left_out)
end

function render(state, value, depth)
  local kind = type(value)
  if kind ~= "table" and kind ~= "userdata" then return scalar(state, value) end
  local text, remark = custom(state, value, depth)
  if text then return text end
  text = kind == "table" and render_table(state, value, depth) or scalar(state, value)
  return remark and ("%s (%s)"):format(text, remark) or text
end

-- ---- the public face ----------------------------------------------------------------------------

local function clip(text, bytes)
  if #text <= bytes then return text end
  local shown, left_out = scalars.cut(text, math.max(0, bytes - REMARK))
  return ("%s\n... %d more bytes"):format(shown, left_out)
end

-- A value that is shown by itself may say how.
local function alone(state, value)
  local text, remark = metamethod.text(state.budget, value, "__console")
  if text then return scalars.clean(scalars.cut(text, state.limits.bytes), true) end
  text = render(state, value, 0)
  return remark and ("%s (%s)"):format(text, remark) or text
end

--- The text of one value. It ends without a newline.
---@param value any
---@param limits moontide.console.Limits|nil
---@return string
function M.text(value, limits)
  local state = printing(limits)
  return clip(alone(state, value), state.limits.bytes)
end

--- The text of several results, as table.pack has them: beside each other when each is one line,
--- else one below the other; "" for none. All together keep the limit of one value.
---@param packed { n: integer, [integer]: any }
---@param limits moontide.console.Limits|nil
---@param give_way fun()|nil called between any two items: others may have their turn
---@return string
function M.values(packed, limits, give_way)
  local state = printing(limits, give_way)
  local texts, separator = {}, "\t"
  local shown = math.min(packed.n, state.limits.items)
  for i = 1, shown do
    texts[i] = alone(state, packed[i])
    state.left = state.left - #texts[i]
    if texts[i]:find("\n", 1, true) then separator = "\n" end
  end
  if packed.n > shown then
    texts[shown + 1] = "... " .. entries.more(packed.n - shown, false)
  end
  return clip(table.concat(texts, separator), state.limits.bytes)
end

--- A value as JSON can say it, within the same limits: see printer/data.lua.
---@param value any
---@param limits moontide.console.Limits|nil
---@return any
function M.data(value, limits)
  return require("moontide.console.printer.data").of(value, complete(limits))
end

--- Several results as JSON can say them: one as itself, several as a list.
---@param packed { n: integer, [integer]: any }
---@param limits moontide.console.Limits|nil
---@param give_way fun()|nil as for `values`
---@return any nil: there are none
function M.data_of(packed, limits, give_way)
  return require("moontide.console.printer.data").all(packed, complete(limits), give_way)
end

return M
