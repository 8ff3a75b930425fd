--- `watch("expression", "500ms", 10)`: evaluates an expression again and again, in the evaluation
--- that asks for it, and shows when the value changes. It ends with its evaluation.

local core = require "moontide.core"
local duration = require "moontide.duration"
local printer = require "moontide.console.printer"
local task = require "moontide.task"
local view = require "moontide.view"

local M = {}

local CALL = "watch(\"#queue\", \"500ms\", 10)"
local DEFAULT_INTERVAL, DEFAULT_TIMES = 0.5, 10
local SHORTEST, LONGEST, MOST = 0.05, 60, 1000
local LIMITS = { depth = 3, items = 20, string = 200, bytes = 2000 }

local function refuse(message, ...)
  error(("watch: " .. message):format(...), 0)
end

local function interval_of(value)
  if value == nil then return DEFAULT_INTERVAL end
  local seconds, message = duration.parse(value, "watch")
  if not seconds then error(("%s: %s"):format(message, CALL), 0) end
  if seconds < SHORTEST or seconds > LONGEST then
    refuse("the interval is from %s to %s: %s", duration.format(SHORTEST),
      duration.format(LONGEST), CALL)
  end
  return seconds
end

local function times_of(value)
  if value == nil then return DEFAULT_TIMES end
  local n = math.tointeger(value)
  if not n or n < 1 or n > MOST then
    refuse("how often is a whole number from 1 to %d: %s", MOST, CALL)
  end
  return n
end

-- Text only, and an expression: what changes something would do so again and again.
local function compile(session, text)
  if type(text) ~= "string" or not text:find "%S" then
    refuse("an expression is wanted, as a text: %s", CALL)
  end
  local fn, message = load("return " .. text, "=watch", "t", session:environment())
  if not fn then refuse("this is no expression: %s", message) end
  return fn
end

-- That the evaluation would end before is said at once, not after half of the time.
local function check_time(interval, times)
  local at = task.deadline()
  local left = at and at - core.clock.now()
  local needed = interval * (times - 1)
  if not left or needed < left then return end
  refuse("%d times every %s take %s, the evaluation has %s: at most %d times, or give it more time",
    times, duration.format(interval), duration.format(needed),
    duration.format(math.floor(left * 10) / 10), math.max(1, math.ceil(left / interval)))
end

-- A failure is a value, too, unless it is the end of the evaluation itself.
local function look(fn)
  local results = table.pack(pcall(fn))
  if results[1] then
    return printer.values(table.pack(table.unpack(results, 2, results.n)), LIMITS)
  end
  local err = results[2]
  local ends = task.is_cancelled(err) or rawequal(err, core.coroutine.interrupted)
  if ends or task.current().cancelled then error(err, 0) end
  return "error: " .. require("moontide.pipeline.record").text(err)
end

local function shown_time(seconds)
  return ("%8.2f s"):format(seconds)
end

--- Evaluates `text` so many times in the session, and prints the first value and each that differs
--- from the one before.
---@async
---@param session moontide.console.Session
---@param text string an expression
---@param interval tide.Duration|nil default 500 ms
---@param times integer|nil default 10
function M.watch(session, text, interval, times)
  local fn = compile(session, text)
  local every, n = interval_of(interval), times_of(times)
  check_time(every, n)
  local show = session:environment().print or print
  local began, last, changes = core.clock.now(), nil, -1
  for i = 1, n do
    local value = look(fn)
    if value ~= last then
      last, changes = value, changes + 1
      show(("%s  %s"):format(shown_time(core.clock.now() - began), value == "" and "nothing"
        or value))
    end
    if i < n then task.sleep(math.max(0, began + i * every - core.clock.now())) end
  end
  show(("%s  %s, %s"):format(shown_time(core.clock.now() - began), view.count(n, "look"),
    view.count(changes, "change")))
end

return M
