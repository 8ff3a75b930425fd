--- Text that leaves the process.
local M = {}

--- The same text with U+FFFD for each byte that belongs to no UTF-8 character.
---@param text string
---@return string
function M.repair(text)
  if utf8.len(text) then return text end
  local parts, from = {}, 1
  while true do
    local length, bad = utf8.len(text, from)
    if length then break end
    parts[#parts + 1] = text:sub(from, bad - 1) .. "\u{FFFD}"
    from = bad + 1
  end
  parts[#parts + 1] = text:sub(from)
  return table.concat(parts)
end

--- A name of anybody's on one line: what would move a terminal's cursor is "?".
---@param text string
---@return string
function M.one_line(text)
  return (M.repair(text):gsub("%c", "?"))
end

--- The text with a newline at its end.
---@param text string
---@return string
function M.line(text)
  return text:sub(-1) == "\n" and text or text .. "\n"
end

--- An error of Lua's with its traceback, which may begin with the message.
---@param message string|nil
---@param traceback string|nil
---@return string text with a newline at its end
function M.failure(message, traceback)
  message = message or "an error without a message"
  if not traceback then return M.line(message) end
  if traceback:sub(1, #message) == message then return M.line(traceback) end
  return M.line(message) .. M.line(traceback)
end

-- Every float reads back from 17 digits, most do from 15.
local DIGITS = { "%.15g", "%.16g", "%.17g" }

--- The shortest decimal that reads back as the same float, with a point in every locale.
---@param number number finite
---@return string
function M.float(number)
  local text
  for _, digits in ipairs(DIGITS) do
    text = digits:format(number)
    if tonumber(text) == number then break end
  end
  if text:find(",", 1, true) then text = text:gsub(",", ".") end
  return text
end

return M
