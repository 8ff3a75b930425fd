--- `phases()`: both pipelines: what each phase may take, took, and what is left.
local arguments = require "moontide.console.inspect.arguments"
local core = require "moontide.core"
local json = require "moontide.json"
local view = require "moontide.view"
local waiting = require "moontide.pipeline.waiting"

local M = {}

--- Names of tasks that are listed of a phase.
local NAMED = 10

---@class moontide.inspect.Phase
---@field name string
---@field status "pending"|"running"|"done"|"skipped"|"disabled"
---@field outcome string|nil
---@field why string|nil why it was skipped
---@field budget number|nil seconds; nil: what the total leaves
---@field used number|nil seconds; nil: it has not begun
---@field slack number|nil seconds that are left, or were; below 0: it is over its time
---@field tasks integer
---@field done integer
---@field failed integer
---@field waiting_for string|nil in the words of the log
---@field running string[] the first tasks that run

local function finite(seconds)
  return seconds and seconds < math.huge and seconds or nil
end

local function count_tasks(phase, row)
  row.tasks, row.done, row.failed = phase.live, 0, 0
  for entry in phase:each() do
    if entry.state == "done" then
      row.done = row.done + 1
      local outcome = entry.outcome
      if outcome ~= "ok" and outcome ~= "skipped" then row.failed = row.failed + 1 end
    end
  end
end

local function see_running(phase, row, now)
  local run = phase.run
  row.running = json.array {}
  if phase.status ~= "running" or not run then return end
  for i, entry in ipairs(waiting.running(run)) do
    if i > NAMED then break end
    row.running[i] = entry.name
  end
  row.waiting_for = waiting.what(run)
  if run.deadline then row.slack = run.deadline - now end
end

local function row_of(pipeline, name, now)
  local phase, node = pipeline.tasks[name], pipeline.graph:get(name)
  local off = node.enabled == false and phase.status == "pending"
  local row = {
    name = name, status = off and "disabled" or phase.status, outcome = phase.outcome,
    why = phase.why, budget = finite(node.effective or node.timeout),
  }
  if phase.started_at then
    row.used = (phase.ended_at or now) - phase.started_at
    row.slack = row.budget and row.budget - row.used
  end
  count_tasks(phase, row)
  see_running(phase, row, now)
  return row
end

-- In the order they run; a graph that is not sealed, or cannot be, has the order of declaration.
local function order_of(pipeline)
  local ok, order = pcall(pipeline.graph.order, pipeline.graph)
  return ok and order or pipeline.names
end

local function outcome_of(run)
  if not run then return "not begun" end
  if run.failure then return "failed" end
  if run.cut then return "cut short: " .. run.cut.text end
  return run.over and "ok" or "running"
end

--- A pipeline as plain data. It needs no task, and any state will do.
---@param pipeline moontide.Pipeline
---@return table { kind, outcome, total, used, left, phases }
function M.of(pipeline)
  local now, run = core.clock.now(), pipeline.run_state
  local budget = pipeline.budget
  local data = {
    kind = pipeline.kind, outcome = outcome_of(run), phases = json.array {},
    total = run and run.total or budget and budget.total or nil,
  }
  if run then
    data.used = (run.ended_at or now) - run.started_at
    if run.total_end and not run.over then data.left = run.total_end - now end
    data.reserve = run.reserve
  end
  for i, name in ipairs(order_of(pipeline)) do data.phases[i] = row_of(pipeline, name, now) end
  return data
end

local function tasks_text(row)
  if row.tasks == 0 then return "no tasks" end
  local text = row.done > 0 and ("%d of %d"):format(row.done, row.tasks) or view.count(row.tasks,
    "task")
  if row.failed > 0 then text = ("%s, %d failed"):format(text, row.failed) end
  return #row.running > 0 and ("%s: %s"):format(text, table.concat(row.running, ", ")) or text
end

local function head_of(data)
  local parts = { ("%s: %s"):format(data.kind, data.outcome) }
  if data.total then parts[#parts + 1] = "total " .. view.time(data.total) end
  if data.used then parts[#parts + 1] = "used " .. view.time(data.used) end
  if data.left then parts[#parts + 1] = "left " .. view.time(data.left) end
  return table.concat(parts, ", ")
end

local function render_one(data)
  local rows = {}
  for i, row in ipairs(data.phases) do
    local status = row.outcome or row.status
    if row.why and row.why ~= status then status = ("%s (%s)"):format(status, row.why) end
    rows[i] = {
      row.name, status, row.budget and view.time(row.budget) or "rest", view.time(row.used),
      view.time(row.slack), tasks_text(row),
    }
  end
  return view.lines(head_of(data), #rows > 0
    and view.columns({ "phase", "", ">budget", ">used", ">slack", "tasks" }, rows) or "no phases")
end

local function render(data)
  return render_one(data.startup) .. "\n\n" .. render_one(data.shutdown)
end

--- Both pipelines.
---@return { startup: table, shutdown: table }
function M.phases(...)
  arguments.none("phases", ...)
  return view.new({
    startup = M.of(require "moontide.startup"), shutdown = M.of(require "moontide.shutdown"),
  }, render)
end

return M
