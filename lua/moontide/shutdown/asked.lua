--- A shutdown is asked for: what begins with the first reason, and what becomes of later ones.
--- Loaded when that happens.

local completion = require "moontide.completion"
local core = require "moontide.core"
local reasons = require "moontide.reason"
local sequence = require "moontide.shutdown.sequence"
local states = require "moontide.states"
local suggest = require "moontide.lazy" "moontide.suggest"
local fail = require("moontide.site").fail

local M = {}

-- A reason and a first phase from `run(reason)` or `run { reason =, from = }`.
local function arguments(what)
  local from
  if type(what) == "table" and what.kind == nil then
    for key in pairs(what) do
      if key ~= "reason" and key ~= "from" then
        fail(suggest.unknown("option of shutdown:run", tostring(key), { "reason", "from" }))
      end
    end
    what, from = what.reason, what.from
  end
  local reason, message = reasons.parse(what)
  if not reason then fail(message) end
  return reason, from
end

local function check_from(self, from)
  if from ~= nil and not self.tasks[from] then
    fail(suggest.unknown("shutdown phase", tostring(from), self.names))
  end
end

local function write(message, reason)
  local fields = { "reason", reason.kind }
  for _, key in ipairs { "signal", "pid", "uid", "code" } do -- its text is in the message
    if reason[key] ~= nil then
      fields[#fields + 1], fields[#fields + 2] = key, reason[key]
    end
  end
  core.log.write(1, "lifecycle", message .. tostring(reason), table.unpack(fields))
end

-- A reason after the first may still make a clean exit an unclean one.
local function record_later(self, reason)
  self.later[#self.later + 1] = reason
  write("the shutdown is under way; recorded: ", reason)
end

-- From here on a shutdown runs; what rises ends where it is, before it can fail for that.
local function begin(self, reason)
  self.reason, self.started_at = reason, core.clock.now()
  self.completion = completion.new()
  require("moontide.startup").cut("the process shuts down: " .. tostring(reason))
end

--- What `tide.shutdown:run` does.
---@param self moontide.Shutdown
---@param what string|tide.Reason|{ reason: string|tide.Reason, from: string }|nil
---@return moontide.Completion
function M.run(self, what)
  local reason, from = arguments(what)
  check_from(self, from)
  if require("moontide.boot").main.described then return completion.new() end
  if self.completion then
    record_later(self, reason)
    return self.completion
  end
  begin(self, reason)
  sequence.arm(self) -- first: the total also bounds who observes the move
  write("shutdown: ", reason)
  states.move("draining", reason)
  sequence.start(self, from)
  return self.completion
end

--- What `tide.shutdown:pass` does.
---@param self moontide.Shutdown
---@param reason tide.Reason
---@param code integer
function M.pass(self, reason, code)
  if self.completion then return record_later(self, reason) end
  begin(self, reason)
  -- What is ready has its turn before the loop ends, and may spin.
  if core.host.flags.exit then sequence.arm(self) end
  write("exit without a shutdown: ", reason)
  states.move("draining", reason)
  states.move("stopped", reason)
  self.code = code
  core.log.write(code == 0 and 1 or 3, "lifecycle", "stopped", "exit_code", code,
    "reason", reason.kind, "why", tostring(reason) .. ", without a shutdown")
  self.completion:finish(code)
  core.host.stop(code)
end

return M
