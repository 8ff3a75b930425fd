--- What happens between "shut down" and the exit, in order, in one task of the host's own.
--
-- First whatever still rises is stopped (the main chunk, the startup pipeline), so that the
-- shutdown sees exactly what started. Then the phases. Then the end: state, report, code, stop.

local core = require "moontide.core"
local record = require "moontide.pipeline.record"
local task = require "moontide.task"

local write = core.log.write

local M = {}

-- Stops what rises. The main chunk that waits in run_until_terminated has done its part.
local function stop_rising(text)
  local main = require("moontide.boot").main
  if main and not main.parked and main.task then
    main.task:cancel(text)
    main.task:join()
  end
  require("moontide.startup").stop(text)
end

-- A shutdown that comes before the script has loaded finds the graph as far as it is; one that has
-- no order cannot run, and says why.
local function sealed(shutdown)
  if shutdown.sealed then return true end
  local errors = require("moontide.boot").seal_shutdown()
  for _, message in ipairs(errors) do write(record.levels.ERROR, "lifecycle", message) end
  return #errors == 0
end

local function make_run(shutdown)
  local settings = require("moontide.settings").shutdown(shutdown.reason)
  local total = settings.total
  return require("moontide.pipeline.run").new {
    kind = "shutdown", graph = shutdown.graph, registry = shutdown.tasks,
    shared = shutdown.shared, reason = shutdown.reason, skip = settings.skip,
    total = total, total_end = shutdown.started_at + total, reserve = settings.reserve,
    parallel = settings.parallel,
  }
end

local function run_phases(shutdown, from)
  if not sealed(shutdown) then return "failed" end
  local run = make_run(shutdown)
  shutdown.run_state = run
  if shutdown.forced then run:stop("force", shutdown.forced) end
  return run:execute(from)
end

--- The code the process ends with.
---@param outcome string of the run
---@return integer code
---@return tide.Reason|nil decisive the later reason that made it so
local function exit_code(shutdown, outcome)
  local codes = require "moontide.exit"
  local code = codes.for_reason(shutdown.reason)
  if code ~= 0 then return code end
  for _, later in ipairs(shutdown.later) do
    code = codes.for_reason(later)
    if code ~= 0 then return code, later end
  end
  if outcome == "failed" and code == 0 then code = codes.FAILED end
  local http = package.loaded["moontide.http"]
  if code == 0 and http and http.forced() > 0 then -- requests that the drain had to break off
    code = require("moontide.config").get "shutdown.forced_exit_code"
  end
  return code
end

local function ended(shutdown, outcome)
  require("moontide.finish").part(shutdown)
  local code, decisive = exit_code(shutdown, outcome)
  require("moontide.states").move("stopped", shutdown.reason)
  shutdown.code = code
  require("moontide.finish").finish(shutdown, code, decisive)
  shutdown.completion:finish(code)
  -- A process of ours is not out yet: what print left may meet a full pipe.
  if not core.host.flags.exit then core.watchdog.total("shutdown", nil) end
  core.host.stop(code)
end

local function sequence(shutdown, from)
  stop_rising("the process shuts down: " .. tostring(shutdown.reason))
  ended(shutdown, run_phases(shutdown, from))
end

-- A fault in the sequence itself must not leave a process that never ends.
local function check(runner)
  if runner.outcome == "ok" then return end
  write(record.levels.ERROR, "lifecycle", "the shutdown failed inside the host: "
    .. record.text(runner.error), "traceback", runner.stack)
  core.host.stop(1)
end

--- The time of the total runs from now on.
function M.arm(shutdown)
  local total = require("moontide.settings").shutdown(shutdown.reason).total
  core.watchdog.total("shutdown", shutdown.started_at + total)
  core.watchdog.total("startup", nil)
end

--- Begins; returns at once.
---@param shutdown moontide.Shutdown
---@param from string|nil the first phase to run
function M.start(shutdown, from)
  local total = require("moontide.settings").shutdown(shutdown.reason).total
  if core.notify.active() then require("moontide.systemd").stopping(shutdown.reason, total) end
  shutdown.runner = task.start({
    name = "shutdown", scope = task.pipeline, kind = "pipeline", on_end = check,
    detached_errors = true,
  }, sequence, shutdown, from)
end

return M
