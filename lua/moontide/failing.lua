--- What becomes of a script that cannot be used, and of a main chunk, a startup or a task that
--- fails. Loaded with the first failure.

local core = require "moontide.core"
local exit = require "moontide.exit"
local reasons = require "moontide.reason"
local record = require "moontide.pipeline.record"
local shutdown = require "moontide.shutdown"
local task = require "moontide.task"
local uncaught = require "moontide.uncaught"

local write = core.log.write

local M = {}

--- Drops the tasks that have not begun: what the main chunk spawned is not to run. The others are
--- left alone; told to end, one that does not listen would hold up the exit.
function M.drop_new()
  for t in task.root:tasks() do
    if t.at == "new" then t:cancel "the script does not run" end
  end
end

--- Reports why nothing can start (the script is unusable, or a port is taken), and ends.
---@param errors string[]
---@param code integer|nil default: that of an invalid script
function M.refuse(errors, code)
  for _, message in ipairs(errors) do write(3, "lifecycle", message) end
  code = code or exit.invalid_code()
  require("moontide.finish").last_words(("exit %d: %s"):format(code, errors[1]))
  M.drop_new()
  require("moontide.finish").leave()
  core.state.move("stopped") -- without a record: the errors are all that is said
  shutdown.code = code
  core.host.stop(code)
end

--- The startup has failed: what has risen is taken down.
---@param message string
function M.startup(message)
  shutdown:run(reasons.new("startup-failed", { text = message }))
end

--- The main chunk did not end well.
---@param t moontide.Task
---@param main moontide.Main
---@param begun boolean the startup has begun
function M.main(t, main, begun)
  if exit.is_exit(t.error) or shutdown.is_complete() then return end
  if shutdown.is_running() and t.outcome == "cancelled" then return end
  if main.invalid and not (begun or shutdown.is_running()) then
    return M.refuse { main.invalid }
  end
  local stack = main.traceback or t.stack
  uncaught.report("main chunk", t.error, { task = "main chunk", traceback = stack })
  if not shutdown.is_running() then M.startup(record.text(t.error)) end
end

--- A task failed that nobody awaits.
---@param t moontide.Task
function M.task(t)
  -- Told to end with the rest of the process: how it does is no reason of its own.
  if t.cancelled and shutdown.is_running() then
    write(2, "lifecycle", ("task %q ended badly when it was cancelled: %s"):format(t.name,
      record.text(t.error)), "task", t.name, "traceback", t.stack)
    return
  end
  uncaught.report("task", t.error, { task = t.name, traceback = t.stack })
end

return M
