--- What a shutdown would do if it began now, or what is left of the one that runs: its phases with
--- their times, the worst case, and what would be waited for. Nothing is changed by asking.

local core = require "moontide.core"
local duration = require "moontide.duration"
local json = require "moontide.lazy" "moontide.json"
local text_of = require "moontide.text"
local view = require "moontide.view"

local time = duration.rounded

local M = {}

-- ---- what is in flight --------------------------------------------------------------------------

local function requests()
  local list = {}
  local http = package.loaded["moontide.http"]
  for _, server in ipairs(http and http.servers or {}) do
    local busy, in_flight = core.http.counts(server.listener)
    list[#list + 1] = { listener = server.name, requests = in_flight, connections = busy }
  end
  return list
end

local function batches()
  local list = {}
  local room = package.loaded["moontide.worker"]
  for name, worker in pairs(room and room.all() or {}) do
    if worker.in_hand then
      list[#list + 1] = { worker = name, seconds = core.clock.now() - worker.in_hand }
    end
  end
  table.sort(list, function(a, b) return a.worker < b.worker end)
  return list
end

-- The kinds of work that scripts and rooms count, and a program of its own; requests are above.
local function work()
  local list = {}
  for _, source in ipairs((require("moontide.console.inspect.work").list())) do
    if source.active > 0 and not source.name:find "^http:" then
      list[#list + 1] = { kind = source.name, active = source.active }
    end
  end
  return list
end

-- What a program that embeds the host has in flight, in words; nil: nothing.
local function of_program()
  if core.host.mode ~= "embedded" then return nil end
  local text = require("moontide.core.embed").describe_work()
  return text ~= "" and text or nil
end

-- ---- the phases ---------------------------------------------------------------------------------

-- A phase may have ten thousand.
local NAMED = 20

local function task_names(tasks)
  local names = {}
  for entry in tasks:each() do
    names[#names + 1] = entry.name
    if #names == NAMED then break end
  end
  return names
end

-- Why a phase would not run, or nil.
local function why_not(node, tasks, skip)
  if node.enabled == false then return "disabled" end
  if tasks.status == "skipped" then return tasks.why end
  return tasks.asked or skip and skip[node.name] and "reason console" or nil
end

-- What a phase that runs may still take; nil: it does not run.
local function left_of(tasks)
  local at = tasks.status == "running" and tasks.run.deadline
  return at and math.max(0, at - core.clock.now()) or nil
end

local function phase_of(shutdown, budget, skip)
  local node, tasks = shutdown.graph:get(budget.name), shutdown.tasks[budget.name]
  local seconds = node.effective or budget.timeout
  local unbounded = seconds == math.huge
  local phase = {
    name = budget.name, status = tasks.status, outcome = tasks.outcome,
    timeout = not unbounded and seconds or nil, origin = budget.origin, mode = node.mode,
    tasks = task_names(tasks), task_count = tasks.live, skipped = why_not(node, tasks, skip),
    extended = node.extended,
  }
  local idle = tasks.live == 0 or phase.skipped or unbounded or tasks.status == "done"
  phase.worst = idle and 0 or left_of(tasks) or budget.worst + (node.extended or 0)
  return phase
end

local function worst_case(shutdown, phases)
  if shutdown.graph and require("moontide.config").get "shutdown.parallel" then
    local by_name = {}
    for _, phase in ipairs(phases) do by_name[phase.name] = phase end
    local fit = require "moontide.pipeline.fit"
    return fit.critical_path(shutdown.graph, { by_name = by_name }).seconds
  end
  local sum = 0
  for _, phase in ipairs(phases) do sum = sum + phase.worst end
  return sum
end

local function notes_of(plan)
  local notes = {}
  local room = plan.total - plan.reserve
  if plan.worst_case > room + 0.001 then
    notes[#notes + 1] = ("the total ends it before: the phases share %s, %s of it are kept for the "
      .. "end"):format(time(plan.total), time(plan.reserve))
  end
  return notes
end

local function add_phases(plan, shutdown, skip)
  local times = require "moontide.pipeline.times"
  for i, budget in ipairs(times.of(shutdown).phases) do
    plan.phases[i] = phase_of(shutdown, budget, skip)
  end
  plan.worst_case = worst_case(shutdown, plan.phases)
  plan.notes = notes_of(plan)
end

---@class moontide.console.DrainPlan
---@field state string
---@field reason string|nil why it runs; nil: it does not
---@field total number seconds
---@field left number|nil of the total, when it runs
---@field reserve number seconds of the total for the end
---@field worst_case number seconds, if every phase with tasks takes all it may
---@field parallel boolean
---@field phases table[]
---@field requests table[] by listener
---@field batches table[] that workers have in hand
---@field work table[] other work in flight
---@field program string|nil work of the program that embeds the host
---@field tasks integer tasks of the script that live
---@field notes string[]

local function mark_lists(plan)
  for _, key in ipairs { "phases", "requests", "batches", "work", "notes" } do
    json.array(plan[key])
  end
  for _, phase in ipairs(plan.phases) do json.array(phase.tasks) end
  return plan
end

--- The plan as it is now.
---@return moontide.console.DrainPlan
function M.make()
  local shutdown = require "moontide.shutdown"
  local reason = shutdown.reason or require("moontide.reason").new "console"
  local settings = require("moontide.settings").shutdown(reason)
  local plan = {
    state = core.state.get(), total = settings.total, reserve = settings.reserve,
    parallel = settings.parallel, phases = {}, requests = requests(), batches = batches(),
    work = work(), program = of_program(), tasks = require("moontide.task").live_root(),
    notes = {}, worst_case = 0,
  }
  if shutdown.is_running() then
    plan.reason = text_of.one_line(tostring(shutdown.reason))
    plan.left = math.max(0, shutdown.started_at + settings.total - core.clock.now())
  end
  if shutdown.budget then
    add_phases(plan, shutdown, settings.skip)
  else
    plan.notes[1] = "the script is still loading: its phases are not all there yet"
  end
  return mark_lists(plan)
end

-- ---- text ---------------------------------------------------------------------------------------

local function tasks_text(phase)
  local more = phase.task_count - #phase.tasks
  local names = table.concat(phase.tasks, " ")
  return more > 0 and ("%s and %d more"):format(names, more) or names
end

local function phase_row(phase)
  local status = phase.skipped and ("skipped: " .. phase.skipped)
    or phase.status ~= "pending" and (phase.outcome or phase.status)
  return { phase.name, phase.timeout and time(phase.timeout) or "rest",
    phase.task_count > 0 and tasks_text(phase), phase.mode ~= "parallel" and phase.mode,
    status }
end

local function table_of(plan)
  local rows = {}
  for i, phase in ipairs(plan.phases) do rows[i] = phase_row(phase) end
  return view.columns({ "phase", ">time", "tasks", "mode", "now" }, rows)
end

-- What would be waited for, a line each.
local function waits(plan)
  local lines = {}
  for _, item in ipairs(plan.requests) do
    if item.requests > 0 or item.connections > 0 then
      lines[#lines + 1] = ("  %s: %s in flight, %s"):format(item.listener,
        view.count(item.requests, "request"), view.count(item.connections, "busy connection"))
    end
  end
  for _, item in ipairs(plan.batches) do
    lines[#lines + 1] = ("  worker %s: a batch in hand for %s"):format(item.worker,
      time(item.seconds))
  end
  for _, item in ipairs(plan.work) do
    lines[#lines + 1] = ("  %s: %d in flight"):format(item.kind, item.active)
  end
  if plan.program then lines[#lines + 1] = "  the program: " .. plan.program end
  return lines
end

--- One line about the whole.
---@param plan moontide.console.DrainPlan
---@return string
function M.line(plan)
  local count = 0
  for _, phase in ipairs(plan.phases) do
    if phase.task_count > 0 and not phase.skipped then count = count + 1 end
  end
  local text = ("%d of %d phases have tasks, worst case %s, total %s"):format(count, #plan.phases,
    time(plan.worst_case), time(plan.total))
  return plan.left and ("%s, of which %s are left"):format(text, time(plan.left)) or text
end

--- The plan as a person reads it.
---@param plan moontide.console.DrainPlan
---@return string
function M.text(plan)
  local lines = { plan.reason and ("the shutdown runs: " .. plan.reason)
    or "dry run, nothing was begun; a drain would be:", M.line(plan) }
  if #plan.phases > 0 then lines[#lines + 1] = table_of(plan) end
  for _, note in ipairs(plan.notes) do lines[#lines + 1] = note end
  local waiting = waits(plan)
  lines[#lines + 1] = #waiting > 0 and "it would wait for, now:"
    or "nothing is in flight that it would wait for"
  table.move(waiting, 1, #waiting, #lines + 1, lines)
  return table.concat(lines, "\n")
end

return M
