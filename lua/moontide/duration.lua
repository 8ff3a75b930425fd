--- Durations: a number of seconds, or a text with units ("250ms", "3s", "1m30s").
---
--- Pure. A text without a unit is refused: "40" in a script says neither seconds
--- nor milliseconds. (The environment, where everything is text, is read by
--- `config`, which takes a bare number as seconds.)
local M = {}

local UNITS = { ms = 0.001, s = 1, m = 60, h = 3600 }
local HELP = "a duration is a number of seconds or a text such as \"250ms\", \"3s\", \"2m\", \"1h\""

---@alias tide.Duration number|string seconds, or a text with units

--- Reads "1m30s" piece by piece; nil when anything is left over.
local function parse_text(text)
  local total, at = 0, 1
  while at <= #text do
    local digits, unit, next_at = text:match("^(%d+%.?%d*)(%a+)()", at)
    local scale = unit and UNITS[unit]
    if not scale then return nil end
    total, at = total + tonumber(digits) * scale, next_at
  end
  return total
end

local function refused(what, shown, problem)
  return nil, ("%s: %s %s; %s"):format(what or "duration", shown, problem, HELP)
end

local function parse_string(text, what)
  local shown = ("%q"):format(text):gsub("\n", "n")
  if text == "none" then return refused(what, shown, "is not possible here") end
  if tonumber(text) then return refused(what, shown, "has no unit") end
  if text:find("^%s*%-") then return refused(what, shown, "is negative") end
  local seconds = text ~= "" and parse_text(text)
  if not seconds then return refused(what, shown, "is not a duration") end
  if seconds == math.huge then return refused(what, shown, "is not finite") end
  return seconds
end

--- Seconds of a duration.
---@param value any
---@param what? string what the duration is of, for the message
---@return number|nil seconds
---@return string? message
function M.parse(value, what)
  if type(value) == "number" then
    if value ~= value then return refused(what, "NaN", "is not a duration") end
    if value < 0 then return refused(what, tostring(value), "is negative") end
    if value == math.huge then return refused(what, "infinity", "is not a duration") end
    return value
  end
  if type(value) == "string" then return parse_string(value, what) end
  return refused(what, "a " .. type(value), "is not a duration")
end

--- Seconds of a duration; raises at `level` (1: the caller of `check`).
---@param value any
---@param what? string
---@param level? integer
---@return number seconds
function M.check(value, what, level)
  local seconds, message = M.parse(value, what)
  if not seconds then error(message, (level or 1) + 1) end
  return seconds
end

local function trimmed(number)
  return (("%.3f"):format(number):gsub("0+$", ""):gsub("%.$", ""))
end

--- The shortest text that reads back as the same duration, to the microsecond.
---@param seconds number
---@return string
function M.format(seconds)
  if seconds == math.huge then return "none" end
  if seconds < 0 then return "-" .. M.format(-seconds) end
  if seconds == 0 then return "0s" end
  if seconds < 0.9995 then return trimmed(seconds * 1000) .. "ms" end
  -- Rounded first, so that 59.9999 does not become "60s" beside "1m".
  local ms = math.floor(seconds * 1000 + 0.5)
  local hours, minutes = ms // 3600000, ms // 60000 % 60
  local rest = ms % 60000 / 1000
  local parts = {}
  if hours > 0 then parts[#parts + 1] = hours .. "h" end
  if minutes > 0 then parts[#parts + 1] = minutes .. "m" end
  if rest > 0 then parts[#parts + 1] = trimmed(rest) .. "s" end
  return table.concat(parts)
end

--- As `format`, to the millisecond: for people.
---@param seconds number
---@return string
function M.rounded(seconds)
  return M.format(math.floor(seconds * 1000 + 0.5) / 1000)
end

return M
