--- The state dump (SIGQUIT): phases, tasks with their tracebacks, handles; into the log.

local core = require "moontide.core"
local task = require "moontide.task"
local task_run = require "moontide.pipeline.task_run"
local waiting = require "moontide.pipeline.waiting"

local write = core.log.write
local INFO = 1

local M = {}

local function age(since)
  return since and ("%.1f"):format(core.clock.now() - since)
end

local function dump_pipeline(pipeline)
  for _, name in ipairs(pipeline.names) do
    local phase = pipeline.tasks[name]
    if phase.live > 0 or phase.status ~= "pending" then
      write(INFO, "dump", ("%s phase %s: %s"):format(pipeline.kind, name,
        phase.outcome or phase.status), "phase", name, "tasks", phase.live,
        "seconds", age(phase.started_at))
    end
  end
  local run = pipeline.run_state
  for _, active in ipairs(run and run.active or {}) do
    write(INFO, "dump", waiting.line(active), "phase", active.name)
    for _, entry in ipairs(waiting.running(active)) do
      write(INFO, "dump", "running: " .. entry.name, "phase", active.name, "task", entry.name,
        "site", task_run.site(entry), "seconds", age(entry.started_at))
    end
  end
end

local function dump_task(t)
  local doing = (t.waiting_on or t.state):gsub("^task task ", "task ")
  write(INFO, "dump", ("%s: %s"):format(t.name or "a task", doing), "kind", t.kind or nil,
    "site", t:site(), "seconds", age(t.started_at), "traceback", t:traceback())
end

local MAX = 200

local function dump_scope(scope)
  local count = 0
  for t in scope:tasks() do
    count = count + 1
    if count > MAX then break end
    dump_task(t)
  end
  if scope:count() > MAX then
    write(INFO, "dump", ("%d more tasks in scope %s"):format(scope:count() - MAX, scope.name))
  end
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
  dump_scope(task.root)
  local background = package.loaded["moontide.background"]
  if background then dump_scope(background.scope) end
  dump_handles()
end

return M
