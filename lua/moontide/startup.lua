--- The startup pipeline, `tide.startup`: how the process rises.

local core = require "moontide.core"
local graph = require "moontide.pipeline.graph"
local pipeline = require "moontide.pipeline.pipeline"

---@class moontide.Startup : moontide.Pipeline
local M = setmetatable({}, { __index = pipeline.Pipeline })

--- Makes it anew, empty.
function M.reset()
  M.running, M.ended_at, M.profile = false, nil, nil
  pipeline.init(M, "startup", graph.new { kind = "startup", sequential = true })
end

--- Whether it runs now.
function M.is_running()
  return M.running
end

-- What is to be told when the last phase is over: in the task that ran the phases.
local function ended(run, outcome, on_end)
  M.running, M.ended_at = false, core.clock.now()
  core.watchdog.total("startup", nil)
  on_end(outcome, run)
end

--- Runs the phases in a task of their own; returns at once.
---@param opts { total: number, reserve: number, parallel: boolean }
---@param on_end fun(outcome: "ok"|"failed"|"stopped", run: moontide.Run)
---@return moontide.Task
function M.start(opts, on_end)
  local task = require "moontide.task"
  local run = require("moontide.pipeline.run").new {
    kind = "startup", graph = M.graph, registry = M.tasks, shared = M.shared,
    total = opts.total, total_end = core.clock.now() + opts.total, reserve = opts.reserve,
    parallel = opts.parallel,
  }
  M.running, M.run_state = true, run
  core.watchdog.total("startup", run.total_end)
  M.runner = task.start({ name = "startup", scope = task.pipeline, kind = "pipeline" }, function()
    ended(run, run:execute(), on_end)
  end)
  return M.runner
end

--- Cancels what runs and starts nothing more.
---@param text string what the cancelled tasks are told
function M.cut(text)
  if M.running then M.run_state:stop("stop", text) end
end

--- As `cut`; returns when it is over. For a task.
---@param text string
function M.stop(text)
  M.cut(text)
  if M.running then M.runner:join() end
end

M.reset()

return M
