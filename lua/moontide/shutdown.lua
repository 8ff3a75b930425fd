--- The shutdown pipeline, `tide.shutdown`: how the process ebbs.
--
-- It runs once, whoever asks: the first reason is what tasks see, later ones are recorded. The move
-- to draining happens inside `run`, before anything else of the shutdown.

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

--- Starts the shutdown, once, and returns at once; later calls share the first run.
---@param what string|tide.Reason|{ reason: string|tide.Reason, from: string }|nil
---@return moontide.Completion
function M:run(what)
  return require("moontide.shutdown.asked").run(self, what)
end

--- Ends the process without the pipeline: the first reason's settings say so.
---@param reason tide.Reason
---@param code integer
function M:pass(reason, code)
  require("moontide.shutdown.asked").pass(self, reason, code)
end

--- Skips to the phases that always run; a second SIGINT.
---@param text string
function M.force(text)
  M.forced = text
  if M.run_state then M.run_state:stop("force", text) end
end

M.reset()

return M
