--- The state dump (SIGQUIT): phases, tasks with their tracebacks, handles; into the log. It is
--- collected as for the console.

local core = require "moontide.core"
local phases = require "moontide.console.inspect.phases"
local task = require "moontide.task"
local task_run = require "moontide.pipeline.task_run"
local tasks = require "moontide.console.inspect.tasks"
local waiting = require "moontide.pipeline.waiting"
local walk = require "moontide.console.inspect.walk"

local write = core.log.write
local INFO = 1

local M = {}

-- Tasks that have a record of their own.
local MAX = 200

local function seconds(value)
  return value and ("%.1f"):format(value)
end

local function dump_running(active)
  write(INFO, "dump", waiting.line(active), "phase", active.name)
  for _, entry in ipairs(waiting.running(active)) do
    write(INFO, "dump", "running: " .. entry.name, "phase", active.name, "task", entry.name,
      "site", task_run.site(entry), "seconds", seconds(core.clock.now() - entry.started_at))
  end
end

local function dump_pipeline(pipeline)
  for _, row in ipairs(phases.of(pipeline).phases) do
    if row.tasks > 0 or row.outcome or row.used then
      write(INFO, "dump", ("%s phase %s: %s"):format(pipeline.kind, row.name,
        row.outcome or row.status), "phase", row.name, "tasks", row.tasks,
        "seconds", seconds(row.used))
    end
  end
  local run = pipeline.run_state
  for _, active in ipairs(run and run.active or {}) do dump_running(active) end
end

local function dump_task(t)
  local row = tasks.facts(t)
  write(INFO, "dump", ("%s: %s"):format(row.name, tasks.doing(row)), "kind", row.kind,
    "site", row.site, "scope", row.scope, "seconds", seconds(row.age), "traceback", t:traceback())
end

local function dump_tasks(live)
  local count = 0
  walk.each(function(t)
    count = count + 1
    dump_task(t)
    return count == MAX
  end, true)
  if live > count then write(INFO, "dump", ("%d more tasks"):format(live - count)) end
end

-- Only a script that uses luv has handles; asking must not load it.
local function dump_handles()
  local uv = package.loaded["moontide.uv"]
  if not (uv and uv.handles) then return end
  for _, handle in ipairs(uv.handles()) do
    write(INFO, "dump", ("open handle: %s%s"):format(handle.type,
      handle.active and "" or ", not active"), "site", handle.site)
  end
end

--- Writes it.
---@param trigger string what asked for it
function M.write(trigger)
  local counts = task.counts()
  write(INFO, "dump", "state dump", "trigger", trigger, "state", core.state.get(),
    "ready", counts.ready, "waiting", counts.waiting, "live", counts.live)
  dump_pipeline(require "moontide.startup")
  dump_pipeline(require "moontide.shutdown")
  dump_tasks(counts.live)
  dump_handles()
end

return M
