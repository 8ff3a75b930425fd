--- Readiness checks: run in the background, served from the core without Lua.
--
-- A check's result goes to `core.health` together with the time at which it is stale, so that a
-- check that hangs turns the answer by itself.

local background = require "moontide.background"
local core = require "moontide.core"
local duration = require "moontide.duration"
local fail = require("moontide.site").fail
local options = require "moontide.options"
local record = require "moontide.pipeline.record"
local task = require "moontide.task"

local now = core.clock.now

local M = {}

local SPECS = {
  every = "duration", timeout = "duration", critical = "boolean", failures = "count",
  successes = "count",
}
local DEFAULTS = { every = 5, timeout = 1, critical = true, failures = 3, successes = 1 }

-- Seconds that the difference of two times may be too small by: they are doubles.
local ROUNDING = 1e-6

-- A result older than this many periods is stale.
local PERIODS = 3

---@class moontide.CheckOptions
---@field every number|string|nil default 5 s
---@field timeout number|string|nil default 1 s
---@field critical boolean|nil default true: the process is not ready without it
---@field failures integer|nil this many in a row turn it, default 3
---@field successes integer|nil this many in a row turn it back, default 1

---@class moontide.Check
---@field name string
---@field ok boolean|nil what is served; nil before the first result
---@field message string|nil why it is not ok
---@field at number|nil when the last result came, on the clock's scale
---@field latency number|nil seconds that it took
---@field expires_at number|nil when that result is stale
---@field good integer results in a row that were ok
---@field bad integer results in a row that were not
local Check = {}
Check.__index = Check

local checks = {}

-- What the function's results mean: ok, message, table to merge into the body.
local function judge(passed, value, message)
  if not passed then return false, record.text(value) end
  if value == true then return true end
  if type(value) == "table" then return true, nil, value end
  if not value then
    local shown = value == nil and "nothing" or "false"
    return false, message and tostring(message) or "the check returned " .. shown
  end
  return false, ("the check returned a %s; true or a table is ok"):format(type(value))
end

-- Counts in a row; the first result counts at once.
local function settle(self, ok)
  if ok then
    self.good, self.bad = self.good + 1, 0
  else
    self.good, self.bad = 0, self.bad + 1
  end
  if self.ok == nil then return ok end
  if ok and self.good >= self.opts.successes then return true end
  if not ok and self.bad >= self.opts.failures then return false end
  return self.ok
end

local function log_turn(self, was)
  if self.ok == was or (was == nil and self.ok) then return end
  core.log.write(self.ok and 1 or 2, "readiness", ("check %s is %s%s"):format(self.name,
    self.ok and "ok" or "not ok", self.ok and "" or ": " .. self.message),
    "check", self.name, "critical", self.opts.critical)
end

-- What the core says itself; a member of this name in a check's table is left out.
local RESERVED = { ok = true, critical = true, stale = true }

local function body_of(self, latency_ms, extra)
  local body = {}
  for key, value in pairs(extra or {}) do
    if not RESERVED[key] then body[key] = value end
  end
  body.latencyMs = latency_ms
  if not self.ok then body.error = self.message end
  return body
end

--- The members of an object as JSON, without its braces: the core adds them to its own.
---@param body table
---@return string|nil nil when there are none, or for what JSON cannot say
function M.members(body)
  local ok, text = pcall(require("moontide.json").encode, body)
  text = ok and text:match "^{(.+)}$"
  return text or nil
end

local function publish(self, latency_ms, extra)
  local text
  if extra or not self.ok then text = M.members(body_of(self, latency_ms, extra)) end
  text = text or ("\"latencyMs\":%d"):format(latency_ms) -- alone, or beside what JSON cannot say
  local opts = self.opts
  self.at = now()
  self.expires_at = self.at + PERIODS * opts.every
  core.health.set(self.name, self.ok, opts.critical, text, self.expires_at)
end

--- Takes one result.
function Check:result(ok, message, extra, latency)
  local was = self.ok
  self.latency = latency
  self.message = ok and self.message or message
  self.ok = settle(self, ok)
  if self.ok then self.message = nil end
  log_turn(self, was)
  local ms = math.floor(latency * 1000 + 0.5)
  publish(self, ms, extra)
  if record.observer then
    record.observer("check", nil, nil, self.name, ok and "ok" or message, ms)
  end
end

local function call(self)
  local passed, value, message = pcall(task.timeout, self.opts.timeout, self.fn)
  if not passed and require("moontide.exit").is_exit(value) then self.over = true end
  return passed, value, message
end

-- What a run came to, for who asked for it.
local function tell_asker(self, ok, message, took)
  local asked = self.asked
  self.asked = nil
  asked:set { ok = ok, message = not ok and message or nil, seconds = took }
end

-- A check never runs twice at a time: whoever finds it running has its result.
local function run_once(self)
  local began = now()
  self.runs = true
  local ok, message, extra = judge(call(self))
  local took = now() - began
  if not ok and took > self.opts.timeout - ROUNDING then
    message = ("%s (the check's timeout is %s)"):format(message, duration.format(self.opts.timeout))
  end
  self.runs = false
  if not self.over then self:result(ok, message, extra, took) end
  if self.asked then tell_asker(self, ok, message, took) end
  return took
end

--- Runs the check now, beside its periods, and waits for the result, which counts as any other.
---@async
---@return { ok: boolean, message: string|nil, seconds: number }|nil result of this run
---@return string|nil message why it cannot run
function Check:run_now()
  if not self.task then return nil, "it has not begun: a check runs once the process is ready" end
  self.asked = self.asked or task.event("the check " .. self.name)
  local asked = self.asked
  if not self.runs then
    self.runs = true
    local run = background.start(("check %s, asked for"):format(self.name), "check", run_once, self)
    run:join()
    self.runs = false -- also when the shutdown ended it before it began
    if not asked:is_set() then return nil, "it was ended by the shutdown" end
  end
  return asked:wait()
end

local function loop(self)
  while not self.over do
    local took = self.runs and 0 or run_once(self)
    task.sleep(math.max(self.opts.every - took, self.opts.every / 10))
  end
end

--- Ends the check; it is no longer part of the answer.
function Check:cancel()
  self.over = true
  checks[self.name] = nil
  if self.task then self.task:cancel("the check was withdrawn") end
  core.health.remove(self.name)
end

local function begin(self)
  if self.over then return end
  self.task = background.start("check " .. self.name, "check", loop, self)
end

--- Declares a check that does not run yet: `activate` starts it.
---@return moontide.Check
function M.declare(name, opts, fn)
  if fn == nil and type(opts) == "function" then opts, fn = nil, opts end
  options.name("check", name)
  local what = ("check %q"):format(name)
  local checked = options.check(what, opts, SPECS, DEFAULTS)
  options.fn(what, fn)
  if checks[name] then fail(what .. " exists already") end
  local self = setmetatable({ name = name, opts = checked, fn = fn, good = 0, bad = 0 }, Check)
  checks[name] = self
  return self
end

--- Runs the check from now on, or from when the service is ready.
function Check:activate()
  background.when_ready(function() begin(self) end)
end

--- Declares a readiness check.
---@param name string
---@param opts moontide.CheckOptions|function|nil
---@param fn function|nil ok when it returns true or a table
---@return moontide.Check
function M.check(name, opts, fn)
  local self = M.declare(name, opts, fn)
  self:activate()
  return self
end

--- The checks by name, for the console and the metrics.
function M.all()
  return checks
end

return M
