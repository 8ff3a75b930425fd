--- How something is shown to people: columns that line up, numbers as they are read, and plain data
--- with a metatable that renders it. Pure.
local text = require "moontide.text"

local M = {}

--- Columns that a cell may have before it is cut.
local WIDEST = 60

--- Makes data that the console prints by `render`, and that is a plain table otherwise.
---@generic T: table
---@param data T
---@param render fun(data: T): string
---@return T data the same table
function M.new(data, render)
  return setmetatable(data, { __console = render })
end

--- A text that is at most `width` characters long, and how long it is.
---@param cell any
---@param width integer
---@return string
---@return integer
function M.cut(cell, width)
  local shown = type(cell) == "string" and cell or tostring(cell)
  -- Most are short and plain, and there are thousands in a table.
  if #shown <= width and not shown:find "[%c\128-\255]" then return shown, #shown end
  shown = text.one_line(shown)
  local length = utf8.len(shown)
  if length <= width then return shown, length end
  return shown:sub(1, utf8.offset(shown, width) - 1) .. "…", width
end

--- A text as lines of at most `width` characters, broken between words where that can be.
---@param line string
---@param width integer
---@param most integer lines; the last is cut
---@return string[]
function M.wrap(line, width, most)
  local lines, rest = {}, text.one_line(line)
  while #lines < most - 1 and utf8.len(rest) > width do
    local piece = rest:sub(1, utf8.offset(rest, width + 1) - 1)
    local space = piece:match "^.*() "
    if space and space > 1 then piece = piece:sub(1, space - 1) end
    lines[#lines + 1] = piece
    rest = rest:sub(#piece + 1):gsub("^ +", "")
  end
  lines[#lines + 1] = M.cut(rest, width)
  return lines
end

local function padded(cell, missing, right)
  if missing <= 0 then return cell end
  local space = (" "):rep(missing)
  return right and space .. cell or cell .. space
end

local function trimmed(line)
  local last = #line
  while line:byte(last) == 32 do last = last - 1 end
  return line:sub(1, last)
end

-- The texts of a row, with their lengths; the columns become as wide as they are.
local function cells_of(row, count, widths, widest)
  local cells, lengths = {}, {}
  for i = 1, count do
    local length
    cells[i], length = M.cut(row[i] or "-", widest)
    lengths[i] = length
    if length > widths[i] then widths[i] = length end
  end
  cells.lengths = lengths
  return cells
end

---@class moontide.view.Columns
---@field indent string|nil before each line
---@field widest number|nil characters of a cell before it is cut, default 60

--- For what is printed once and may be long: nothing is cut.
---@type moontide.view.Columns
M.WHOLE = { indent = "  ", widest = math.huge }

-- What the columns are called, and which are set to the right.
local function headed(head)
  local names, right = {}, {}
  for i, name in ipairs(head) do
    right[i] = name:sub(1, 1) == ">"
    names[i] = right[i] and name:sub(2) or name
  end
  return names, right
end

--- Rows as text, in columns as wide as what stands in them.
---@param head string[] the names of the columns; one that begins with ">" is set to the right
---@param rows any[][] false and nil are "-"
---@param opts moontide.view.Columns|nil
---@return string text without a newline at its end; when no column has a name, without that line
function M.columns(head, rows, opts)
  local indent, widest = opts and opts.indent or "", opts and opts.widest or WIDEST
  local names, right = headed(head)
  local widths, lines = {}, {}
  for i = 1, #head do widths[i] = 0 end
  if table.concat(names) ~= "" then lines[1] = cells_of(names, #head, widths, widest) end
  for _, row in ipairs(rows) do lines[#lines + 1] = cells_of(row, #head, widths, widest) end
  for n, cells in ipairs(lines) do
    for i = 1, #head do cells[i] = padded(cells[i], widths[i] - cells.lengths[i], right[i]) end
    lines[n] = trimmed(indent .. table.concat(cells, "  "))
  end
  return table.concat(lines, "\n")
end

--- "… 812 more", or nothing.
---@param count integer
---@return string|nil
function M.more(count)
  return count > 0 and ("… %d more"):format(count) or nil
end

--- Lines that are there, one below the other.
---@param ... string|nil
---@return string
function M.lines(...)
  local list = {}
  for i = 1, select("#", ...) do
    local line = select(i, ...)
    if line and line ~= "" then list[#list + 1] = line end
  end
  return table.concat(list, "\n")
end

--- Seconds in a few characters: "12 ms", "3.4 s", "2m05s", "3h07m", "12d04h".
---@param seconds number|nil
---@return string
function M.time(seconds)
  if not seconds then return "-" end
  if seconds < 0 then return "-" .. M.time(-seconds) end
  if seconds < 0.9995 then return ("%.0f ms"):format(seconds * 1000) end
  if seconds < 59.95 then return ("%.1f s"):format(seconds) end
  local whole = seconds < 1e15 and math.floor(seconds + 0.5) or math.maxinteger
  if whole < 3600 then return ("%dm%02ds"):format(whole // 60, whole % 60) end
  if whole < 86400 then return ("%dh%02dm"):format(whole // 3600, whole // 60 % 60) end
  return ("%dd%02dh"):format(whole // 86400, whole // 3600 % 24)
end

local UNITS = { "kB", "MB", "GB", "TB" }

--- Bytes in a few characters: "812 B", "3.4 MB".
---@param bytes number|nil
---@return string
function M.bytes(bytes)
  if not bytes then return "-" end
  if bytes < 1000 then return ("%d B"):format(bytes) end
  local unit = 0
  repeat
    bytes, unit = bytes / 1000, unit + 1
  until bytes < 999.95 or unit == #UNITS
  return ("%.1f %s"):format(bytes, UNITS[unit])
end

--- "1 task", "2 tasks".
---@param count integer
---@param what string
---@return string
function M.count(count, what)
  return ("%d %s%s"):format(count, what, count == 1 and "" or "s")
end

return M
