--- "What is it waiting for": the lines every 5 seconds, and the same facts for the state dump.

local core = require "moontide.core"
local task = require "moontide.task"

local now = core.clock.now
local write = core.log.write

local M = {}

M.every = 5

-- What a running entry is doing, in a few words.
local function doing(entry)
  if entry.retry_at then
    return ("next attempt in %.1f s"):format(math.max(0, entry.retry_at - now()))
  end
  local detail = entry.detail and entry.detail()
  if detail then return detail end
  local t = entry.task
  return t and t.waiting_on or "running"
end

--- The entries of a phase that run now.
---@return moontide.Entry[]
function M.running(phase_run)
  local list = {}
  for _, entry in ipairs(phase_run.list or {}) do
    if entry.state == "running" then list[#list + 1] = entry end
  end
  return list
end

-- "12.3 of 30 s"
local function share(phase_run)
  local from = phase_run.phase.started_at
  local spent = now() - from
  if not phase_run.deadline then return ("%.1f s"):format(spent) end
  return ("%.1f of %.4g s"):format(spent, phase_run.deadline - from)
end

--- What is being waited for in a phase: "db: connect and 2 more, 3.1 of 30 s, sleep".
---@return string
function M.what(phase_run)
  local running = M.running(phase_run)
  local first = running[1]
  if not first then return ("%s, %s"):format(phase_run.name, share(phase_run)) end
  local more = #running > 1 and (" and %d more"):format(#running - 1) or ""
  return ("%s: %s%s, %s, %s"):format(phase_run.name, first.name, more, share(phase_run),
    doing(first))
end

--- One line for a phase that is being waited for.
---@return string
function M.line(phase_run)
  return "waiting for " .. M.what(phase_run)
end

local function report(run)
  for _, phase_run in ipairs(run.active) do
    if now() - phase_run.phase.started_at >= M.every - 0.001 then
      write(1, "lifecycle", M.line(phase_run), "phase", phase_run.name,
        "task", (M.running(phase_run)[1] or {}).name)
    end
  end
end

-- Sleeps until the oldest phase that runs has waited for another `every` seconds.
local function watch(run)
  while not run.over do
    local first = run.active[1]
    local from = first and first.phase.started_at or now()
    local turns = math.floor((now() - from) / M.every + 0.001) + 1
    task.sleep(math.max(0.001, from + turns * M.every - now()))
    report(run)
  end
end

--- Watches a run that has begun to wait; once for each run.
function M.start(run)
  if run.waiting_task then return end
  run.waiting_task = task.start({
    name = run.kind .. " waiting lines", scope = task.pipeline, kind = "internal",
    detached_errors = true,
  }, watch, run)
end

return M
