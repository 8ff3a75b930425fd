--- The shutdown pipeline, `tide.shutdown`: how the process ebbs.
--
-- It runs once, whoever asks: the first reason is what tasks see, later ones are recorded. The move
-- to draining happens inside `run`, before anything else of the shutdown.

local core = require "moontide.core"
local graph = require "moontide.pipeline.graph"
local phases = require "moontide.pipeline.phases"
local pipeline = require "moontide.pipeline.pipeline"
local fail = require("moontide.site").fail

---@class moontide.Shutdown : moontide.Pipeline
---@field reason tide.Reason|nil why it runs; nil before
local M = setmetatable({}, { __index = pipeline.Pipeline })

local HOOKS = "shutdown-hooks"

--- Makes it anew: the built-in phases, no task.
function M.reset()
  pipeline.init(M, "shutdown", graph.new { kind = "shutdown", terminal = phases.terminal })
  -- What startup put into its ctx, shutdown finds in its own.
  setmetatable(M.shared, { __index = function(_, key)
    return require("moontide.startup").shared[key]
  end })
  M.reason, M.completion, M.started_at, M.code, M.later = nil, nil, nil, nil, {}
  M.forced = nil
  for _, builtin in ipairs(phases.shutdown) do M:builtin_phase(builtin.name, builtin.opts) end
  M:builtin_phase(phases.hooks.name, phases.hooks.opts)
end

--- Whether a shutdown was asked for; it stays so.
---@return boolean
function M.is_running()
  return M.completion ~= nil
end

---@return boolean
function M.is_complete()
  return M.code ~= nil
end

--- Registers a hook: hooks run one by one, the last registered first, after the service has
--- stopped.
---@param name string
---@param fn fun(reason: tide.Reason, ctx: moontide.Context)
---@return moontide.TaskHandle|nil
---@return string|nil message
function M:on(name, fn)
  return self:task(HOOKS, name, nil, fn)
end

--- The names of the hooks, in order of registration; also after the end.
---@return string[]
function M:hooks()
  local names = {}
  for entry in self.tasks[HOOKS]:each() do names[#names + 1] = entry.name end
  return names
end

--- Changes the budget of a phase that has not begun.
---@param name string
---@param timeout number|string
function M:set_phase_timeout(name, timeout)
  local tasks = self.tasks[name]
  if not tasks then
    fail(require("moontide.suggest").unknown("shutdown phase", tostring(name), self.names))
  end
  if tasks.status ~= "pending" then
    fail(("phase %s has already begun; its timeout can no longer change"):format(name))
  end
  self.graph:set_timeout(name, timeout, require("moontide.site").caller())
  self.graph:get(name).effective = self.graph:get(name).timeout
end

-- ---- running ----------------------------------------------------------------------------------

-- A reason and a first phase from `run(reason)` or `run { reason =, from = }`.
local function arguments(what)
  local reasons = require "moontide.reason"
  local from
  if type(what) == "table" and what.kind == nil then
    for key in pairs(what) do
      if key ~= "reason" and key ~= "from" then
        fail(require("moontide.suggest").unknown("option of shutdown:run", tostring(key),
          { "reason", "from" }))
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
    fail(require("moontide.suggest").unknown("shutdown phase", tostring(from), self.names))
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
  self.completion = require("moontide.completion").new()
  require("moontide.startup").cut("the process shuts down: " .. tostring(reason))
end

--- Starts the shutdown, once, and returns at once; later calls share the first run.
---@param what string|tide.Reason|{ reason: string|tide.Reason, from: string }|nil
---@return moontide.Completion
function M:run(what)
  local reason, from = arguments(what)
  check_from(self, from)
  if require("moontide.boot").main.described then return require("moontide.completion").new() end
  if self.completion then
    record_later(self, reason)
    return self.completion
  end
  local sequence = require "moontide.shutdown.sequence"
  begin(self, reason)
  sequence.arm(self) -- first: the total also bounds who observes the move
  write("shutdown: ", reason)
  require("moontide.states").move("draining", reason)
  sequence.start(self, from)
  return self.completion
end

--- Ends the process without the pipeline: the first reason's settings say so.
---@param reason tide.Reason
---@param code integer
function M:pass(reason, code)
  if self.completion then return record_later(self, reason) end
  local states = require "moontide.states"
  begin(self, reason)
  -- What is ready has its turn before the loop ends, and may spin.
  if core.host.flags.exit then require("moontide.shutdown.sequence").arm(self) end
  write("exit without a shutdown: ", reason)
  states.move("draining", reason)
  states.move("stopped", reason)
  self.code = code
  core.log.write(code == 0 and 1 or 3, "lifecycle", "stopped", "exit_code", code,
    "reason", reason.kind, "why", tostring(reason) .. ", without a shutdown")
  self.completion:finish(code)
  core.host.stop(code)
end

--- Skips to the phases that always run; a second SIGINT.
---@param text string
function M.force(text)
  M.forced = text
  if M.run_state then M.run_state:stop("force", text) end
end

M.reset()

return M
