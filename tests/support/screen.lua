--- What a terminal shows: as much of one as line editing needs. Text, newlines, moving the cursor,
--- erasing, inserting and deleting; lines that have scrolled away are kept.
---
---     local screen = require("support.screen").new(80)
---     screen:feed "ab\27[Dc"
---     assert.equal("ac", screen:lines()[1])
local M = {}

---@class test.Screen
---@field columns integer
---@field row integer of the cursor, from 1, and its column
---@field column integer
local Screen = {}
Screen.__index = Screen

---@param columns integer
---@return test.Screen
function M.new(columns)
  return setmetatable({ columns = columns, row = 1, column = 1, cells = {}, rest = "" }, Screen)
end

local function row_of(self, row)
  local cells = self.cells[row] or {}
  self.cells[row] = cells
  return cells
end

-- A character behind the last column goes to the next line, when the next one comes.
local function put(self, char)
  if self.column > self.columns then self.row, self.column = self.row + 1, 1 end
  row_of(self, self.row)[self.column] = char
  self.column = self.column + 1
end

local CONTROL = {
  ["\r"] = function(self) self.column = 1 end,
  ["\n"] = function(self) self.row = self.row + 1 end,
  ["\b"] = function(self) self.column = math.max(1, math.min(self.column, self.columns) - 1) end,
  ["\t"] = function(self) self.column = (self.column - 1) // 8 * 8 + 9 end,
  ["\a"] = function() end,
}

local function erase_line(self, row, from, to)
  local cells = row_of(self, row)
  for column = from, to do cells[column] = nil end
end

local function shift(self, by)
  local cells = row_of(self, self.row)
  if by > 0 then
    for column = self.columns, self.column + by, -1 do cells[column] = cells[column - by] end
    erase_line(self, self.row, self.column, self.column + by - 1)
  else
    for column = self.column, self.columns do cells[column] = cells[column - by] end
  end
end

local COMMAND = {
  A = function(self, n) self.row = math.max(1, self.row - n) end,
  B = function(self, n) self.row = self.row + n end,
  C = function(self, n) self.column = math.min(self.columns, self.column + n) end,
  D = function(self, n) self.column = math.max(1, self.column - n) end,
  G = function(self, n) self.column = n end,
  P = function(self, n) shift(self, -n) end,
  ["@"] = function(self, n) shift(self, n) end,
  K = function(self, _, given)
    erase_line(self, self.row, (given == 1 or given == 2) and 1 or self.column,
      given == 1 and self.column or self.columns)
  end,
  J = function(self, _, given)
    if given == 2 then
      self.cells = {}
      return
    end
    erase_line(self, self.row, self.column, self.columns)
    for row in pairs(self.cells) do
      if row > self.row then self.cells[row] = nil end
    end
  end,
  H = function(self) self.cells, self.row, self.column = {}, 1, 1 end,
}

-- Reads one thing at the beginning of the text; what is left, or nil when it is not all here.
local function step(self, text)
  local private, number, letter, rest = text:match "^\27%[([?>]?)(%d*)[%d;]*([%a@])(.*)$"
  if letter then
    local fn = private == "" and COMMAND[letter]
    local given = math.tointeger(tonumber(number))
    if fn then fn(self, math.max(given or 1, 1), given) end
    return rest
  elseif text:find "^\27%[" or text == "\27" then
    return nil
  elseif text:find "^\27" then
    return text:sub(3)
  end
  local control = CONTROL[text:sub(1, 1)]
  if control then
    control(self)
    return text:sub(2)
  end
  local char = text:match("^" .. utf8.charpattern)
  if not char or not utf8.len(char) then return #text > 3 and text:sub(2) or nil end
  put(self, char)
  return text:sub(#char + 1)
end

--- Takes in what a program has written.
---@param text string
function Screen:feed(text)
  self.rest = self.rest .. text
  while self.rest ~= "" do
    local left = step(self, self.rest)
    if not left then return end
    self.rest = left
  end
end

--- All lines so far, without the blanks at their ends.
---@return string[]
function Screen:lines()
  local last, list = self.row, {}
  for row in pairs(self.cells) do last = math.max(last, row) end
  for row = 1, last do
    local cells, width = self.cells[row] or {}, 0
    for column in pairs(cells) do width = math.max(width, column) end
    local line = {}
    for column = 1, width do line[column] = cells[column] or " " end
    list[row] = table.concat(line):gsub("%s+$", "")
  end
  return list
end

--- The same as one text.
---@return string
function Screen:text()
  return table.concat(self:lines(), "\n")
end

--- The line that the cursor is in, up to it.
---@return string
function Screen:before_cursor()
  local cells, line = self.cells[self.row] or {}, {}
  for column = 1, self.column - 1 do line[column] = cells[column] or " " end
  return table.concat(line)
end

return M
