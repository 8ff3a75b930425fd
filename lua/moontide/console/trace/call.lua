--- Calls of a function, watched from the field that it is called by.
--
-- The field gets a function that calls the original one and tells of it. It catches nothing, so an
-- error passes with its traceback, and it is Lua, so a call may await. One thing differs while a
-- call is shown: an error of level 2 names as its place not the caller but this file.
--
-- At the end the original stands in its place again; if somebody has put another function there
-- meanwhile, theirs stays, and ours, which they may call, only passes on.

local core = require "moontide.core"
local printer = require "moontide.console.printer"

-- As they are now: what a script does to the globals, or traces of them, must not come back here.
local pcall, rawequal, rawget, rawset = pcall, rawequal, rawget, rawset
local setmetatable, pack = setmetatable, table.pack
local hrtime = core.host.hrtime

local M = {}

local LIMITS = { depth = 2, items = 8, string = 80, bytes = 300 }
local MOST_VALUES = 8

---@class moontide.console.CallTrace
---@field label string "app.query"
---@field limit moontide.console.Limit
---@field tell fun(text: string)
---@field owner table
---@field key any
---@field original function
---@field wrapper function
---@field on boolean
local CallTrace = {}
CallTrace.__index = CallTrace

-- Wrappers by themselves: one that is off may be found as the "original" of another.
local traces = setmetatable({}, { __mode = "k" })

-- While a call is told of, calls by the one who tells are not. Counted: an evaluation is paused
-- wherever it stands, also here, and may be closed in its pause.
local telling = 0
local Told = setmetatable({}, { __close = function() telling = telling - 1 end })

local function values_text(values)
  local parts = {}
  for i = 1, math.min(values.n, MOST_VALUES) do
    parts[i] = printer.text(values[i], LIMITS):gsub("\n%s*", " ")
  end
  local more = values.n - MOST_VALUES
  if more > 0 then parts[#parts + 1] = ("… %d more"):format(more) end
  return table.concat(parts, ", ")
end

local function time_text(nanoseconds)
  if nanoseconds < 1e6 then return ("%.0f us"):format(nanoseconds / 1e3) end
  if nanoseconds < 1e9 then return ("%.1f ms"):format(nanoseconds / 1e6) end
  return ("%.2f s"):format(nanoseconds / 1e9)
end

local function caller()
  local t = core.task.current()
  return t and "task " .. t.name or "no task"
end

-- Telling must never reach the code that is watched: what goes wrong ends the trace instead.
local function guarded(trace, fn, ...)
  telling = telling + 1
  local ok, err
  do
    local _ <close> = Told
    ok, err = pcall(fn, ...)
  end
  if not ok and trace.on then
    trace:stop()
    core.log.write(2, "console", "a trace has ended by an error: " .. tostring(err), "trace",
      trace.label)
  end
end

---@class moontide.console.Call one that is under way
local Call = {}

local function tell_end(call, what)
  local trace = call.trace
  trace.tell(("%s(%s) %s  %s  (%s)"):format(trace.label, call.arguments, what,
    time_text((call.ended or hrtime()) - call.began), call.by))
end

-- It ends without a result: by an error, or because its coroutine is closed.
function Call.__close(call, err)
  if call.returned or not call.trace.on then return end
  guarded(call.trace, function()
    local text = err == nil and "did not return"
      or "raised " .. printer.text(err, LIMITS):gsub("\n%s*", " ")
    tell_end(call, text)
  end)
end

local function begin(trace, ...)
  local call = setmetatable({ trace = trace, arguments = "?", by = "?" }, Call)
  local arguments = pack(...)
  guarded(trace, function()
    call.arguments, call.by = values_text(arguments), caller()
  end)
  call.began = hrtime()
  return call
end

local function returned(call, ...)
  call.returned = true
  if not call.trace.on then return ... end
  local results = pack(...)
  call.ended = hrtime()
  guarded(call.trace, function()
    tell_end(call, results.n == 0 and "returned nothing" or "= " .. values_text(results))
  end)
  return ...
end

local function wrap(trace)
  local original, limit = trace.original, trace.limit
  return function(...)
    if telling > 0 or not trace.on or not limit:admit() then return original(...) end
    local call <close> = begin(trace, ...)
    return returned(call, original(...))
  end
end

--- Begins to watch the function in a field.
---@param fields { label: string, owner: table, key: any, limit: moontide.console.Limit,
--- tell: fun(text: string) }
---@return moontide.console.CallTrace
function M.start(fields)
  local self = setmetatable(fields, CallTrace)
  self.original, self.on = rawget(self.owner, self.key), true
  self.wrapper = wrap(self)
  traces[self.wrapper] = self
  rawset(self.owner, self.key, self.wrapper)
  return self
end

-- The function behind those that watch no more.
local function behind(fn)
  local trace = traces[fn]
  while trace and not trace.on do
    fn = trace.original
    trace = traces[fn]
  end
  return fn
end

--- Ends it; again harmless.
function CallTrace:stop()
  if not self.on then return end
  self.on = false
  local there = rawget(self.owner, self.key)
  if rawequal(there, self.wrapper) then
    rawset(self.owner, self.key, behind(self.original))
  end
  self.limit:stop()
end

return M
