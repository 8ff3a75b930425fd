--- `__tostring` and `__console`, under a budget.
--
-- They are a script's code: they may raise, yield, spin or return nonsense. Each call runs in a
-- coroutine of its own, which is interrupted at the end of the budget like a task at its deadline;
-- where nothing interrupts (a host without a watchdog) a hook looks at the time.
local core = require "moontide.core"
local scalars = require "moontide.console.printer.scalars"

local M = {}

-- Seconds: for one call, and for all calls of one text.
local CALL, ALL = 0.05, 0.1
-- Instructions between two looks of the hook.
local STEP = 1000

local create, close, status = coroutine.create, coroutine.close, coroutine.status
local resume, interrupted = core.coroutine.resume, core.coroutine.interrupted
local now, hrtime = core.clock.now, core.host.hrtime
local sethook = debug.sethook

---@class moontide.console.Budget
---@field left number seconds

---@return moontide.console.Budget
function M.budget()
  return { left = ALL }
end

-- The hook comes after an interrupt would have. From its first raise on each instruction raises, so
-- that a pcall in a loop ends, too. It raises what no message handler of xpcall is called for: one
-- that spins could not be stopped, since hooks are off in a hook.
local function watch(thread, seconds)
  local finish = hrtime() + math.floor(2e9 * seconds)
  local function raise() error(interrupted, 0) end
  local function look()
    if hrtime() < finish then return end
    sethook(thread, raise, "", 1)
    raise()
  end
  sethook(thread, look, "", STEP)
end

-- Runs fn(...) to its end, its error or the end of the time. The body is pcall's, because an
-- error that leaves a hook uncaught forbids all further hooks in its coroutine.
local function run(seconds, fn, ...)
  local thread = create(pcall)
  pcall(watch, thread, seconds) -- where debug.sethook is refused, the deadline is left
  local _, passed, result = resume(thread, now() + seconds, fn, ...)
  return passed, result, thread
end

local function is_callable(handler)
  local meta = type(handler) ~= "function" and debug.getmetatable(handler)
  return type(handler) == "function" or (meta and rawget(meta, "__call") ~= nil)
end

local function call(handler, value)
  return handler(value)
end

local function reason_of(err)
  if rawequal(err, interrupted) then return "took too long" end
  if type(err) ~= "string" then return "raised a " .. type(err) end
  return "raised: " .. scalars.clean((scalars.cut(err, 100)))
end

local function attempt(budget, handler, value)
  if not is_callable(handler) then return nil, "is a " .. type(handler) end
  if budget.left <= 0 then return nil, "not called: the others took too long" end
  local seconds = math.min(CALL, budget.left)
  local began = hrtime()
  local passed, result, thread = run(seconds, call, handler, value)
  local suspended = status(thread) == "suspended"
  -- It is not resumed; its <close> variables are a script's code again.
  if suspended then run(seconds, close, thread) end
  budget.left = budget.left - (hrtime() - began) / 1e9
  if suspended then return nil, "yielded" end
  if not passed then return nil, reason_of(result) end
  if type(result) ~= "string" then return nil, "returned a " .. type(result) end
  return result
end

--- The text that the metamethod `name` of a value makes.
---@param budget moontide.console.Budget
---@param value any
---@param name string "__tostring"
---@return string|nil text nil: there is none, or it failed
---@return string|nil remark "__tostring raised: ..." when it failed
function M.text(budget, value, name)
  local meta = debug.getmetatable(value)
  local handler = meta and rawget(meta, name)
  if handler == nil then return nil end
  local text, remark = attempt(budget, handler, value)
  return text, remark and ("%s %s"):format(name, remark)
end

return M
