--- `why()`: why the process is not ready, what its shutdown waits for, and why it shuts down.
local arguments = require "moontide.console.inspect.arguments"
local audit = require "moontide.console.audit"
local checks = require "moontide.console.inspect.checks"
local core = require "moontide.core"
local json = require "moontide.json"
local task = require "moontide.task"
local tasks = require "moontide.console.inspect.tasks"
local view = require "moontide.view"
local waiting = require "moontide.pipeline.waiting"
local work = require "moontide.console.inspect.work"

local M = {}

--- Tasks that are named where a shutdown waits for all of a scope.
local NAMED = 5

-- ---- what is waited for -------------------------------------------------------------------------

local function add(list, text, ...)
  list[#list + 1] = select("#", ...) > 0 and text:format(...) or text
end

local function add_phases(lines, pipeline)
  local run = pipeline.run_state
  for _, active in ipairs(run and not run.over and run.active or {}) do
    add(lines, "%s phase %s", pipeline.kind, waiting.what(active))
  end
end

-- The main chunk, until it has ended.
local function add_main(lines)
  local main = require("moontide.boot").main
  local t = main.task
  if t and not t.outcome and not main.parked then
    add(lines, "the main chunk, for %s: %s", view.time(core.clock.now() - (t.started_at
      or core.clock.now())), t.waiting_on or t.state)
    return true
  end
end

local function add_work(lines)
  for _, kind in ipairs((work.list())) do
    if kind.active > 0 then add(lines, "%d in flight: %s", kind.active, kind.name) end
  end
end

-- What the last phase ends.
local function add_scope(lines, scope)
  if scope.n == 0 then return end
  local names = {}
  for i, t in ipairs(core.task.oldest(scope, NAMED)) do
    names[i] = ("%s (%s)"):format(tasks.name_of(t), t:site())
  end
  add(lines, "%s of scope %s: %s%s", view.count(scope.n, "task"), scope.name,
    table.concat(names, ", "), scope.n > NAMED and ", …" or "")
end

local function rising(lines)
  if add_main(lines) then return end
  local startup = require "moontide.startup"
  add_phases(lines, startup)
  local takeover = package.loaded["moontide.takeover"]
  if takeover and not startup.run_state then add(lines, "the process that it follows") end
end

local function ebbing(lines)
  local shutdown = require "moontide.shutdown"
  add_main(lines)
  add_phases(lines, require "moontide.startup")
  add_phases(lines, shutdown)
  add_work(lines)
  local run = shutdown.run_state
  for _, active in ipairs(run and run.active or {}) do
    if active.node.always then add_scope(lines, task.root) end
  end
end

-- Of a process that is ready: what makes its probes say that it is not.
local function serving(lines)
  for _, row in ipairs(checks.failing(checks.list())) do
    add(lines, "%s %s is %s%s (%s)", row.kind, row.name, row.state,
      row.message and ": " .. row.message or "", checks.turning(row))
  end
end

local COLLECT = { starting = rising, ready = serving, draining = ebbing }

--- What the process waits for, a line each; in any state, and without a task.
---@return string[]
function M.waiting_for()
  local lines = json.array {}
  local collect = COLLECT[core.state.get()]
  if collect then collect(lines) end
  return lines
end

-- ---- the reason ---------------------------------------------------------------------------------

--- Why the process shuts down, as plain data; nil while it does not.
---@param reason tide.Reason|nil
---@return table|nil
function M.reason(reason)
  if not reason then return nil end
  return {
    kind = reason.kind, text = tostring(reason), signal = reason.signal, pid = reason.pid,
    uid = reason.uid, program = reason.pid and audit.comm(reason.pid),
  }
end

local function reason_line(reason)
  local sender = ""
  if reason.program then sender = (", sent by %s"):format(reason.program) end
  if reason.uid and reason.uid >= 0 then sender = ("%s, user %d"):format(sender, reason.uid) end
  return ("it shuts down: %s%s"):format(reason.text, sender)
end

-- ---- the whole ----------------------------------------------------------------------------------

local VERDICTS = { starting = "not ready: it starts", stopped = "it has stopped" }

local function verdict(data)
  if data.state ~= "ready" then return VERDICTS[data.state] or "not ready: it drains" end
  if data.ready then return "ready" .. (data.probes == "degraded" and ", degraded" or "") end
  return "it serves, but probes are told that it is not ready"
end

local function render(data)
  local lines = { verdict(data) }
  if data.reason then lines[#lines + 1] = reason_line(data.reason) end
  for _, later in ipairs(data.later) do lines[#lines + 1] = "then also: " .. later.text end
  if data.left then
    lines[#lines + 1] = ("%s of the total are left"):format(view.time(data.left))
  end
  for _, line in ipairs(data.waiting_for) do lines[#lines + 1] = "  " .. view.cut(line, 200) end
  if #data.waiting_for == 0 and data.state ~= "stopped" and not data.ready then
    lines[#lines + 1] = "  nothing that it waits for is under way"
  end
  return table.concat(lines, "\n")
end

local function left_of(state)
  local pipeline = require("moontide." .. (state == "starting" and "startup" or "shutdown"))
  local run = pipeline.run_state
  return run and not run.over and run.total_end and run.total_end - core.clock.now() or nil
end

--- Why the process is not ready, or does not end yet.
---@return { state: string, ready: boolean, probes: string, reason: table|nil, later: table[],
--- left: number|nil, waiting_for: string[] }
function M.why(...)
  arguments.none("why", ...)
  local state, shutdown = core.state.get(), require "moontide.shutdown"
  local ready, probes = core.health.ready()
  local later = json.array {}
  for i, reason in ipairs(shutdown.later) do later[i] = M.reason(reason) end
  return view.new({
    state = state, ready = ready, probes = probes, reason = M.reason(shutdown.reason),
    later = later, left = left_of(state), waiting_for = M.waiting_for(),
  }, render)
end

return M
