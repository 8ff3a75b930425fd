--- What is known of the process at one moment, as data: the same keys in every state; what is not
--- known is `json.null`, lists are lists also when they are empty. status/screen.lua shows it.
local json = require "moontide.json"

local M = {}

local null = json.null

---@class moontide.Status
---@field name string
---@field pid integer
---@field version string
---@field mode "process"|"module"|"embedded"
---@field state "starting"|"ready"|"draining"|"stopped"
---@field since number when it came into that state, Unix time
---@field state_seconds number how long ago that is
---@field uptime number seconds
---@field ready boolean what probes are told
---@field probes "ready"|"degraded"|"not_ready"
---@field reason table|userdata why it shuts down: kind, text, signal, pid, uid, program
---@field pipeline table|userdata the one that runs: kind, total, used, left
---@field phases table[] those that run: pipeline, name, budget, used, slack, running
---@field waiting_for string[]
---@field checks moontide.inspect.Check[]
---@field in_flight { active: integer, kinds: moontide.inspect.Work[] }
---@field listeners table[] name, address, connections, busy, in_flight
---@field tasks { live: integer, ready: integer, waiting: integer }
---@field loop_lag table seconds: now (null where nobody can wait), and of the looks that `loop()`
--- begins: looks, last (null before the first), max
---@field memory { lua: integer, resident: integer|userdata }
---@field log_dropped integer
---@field sessions integer

local function or_null(value)
  if value == nil then return null end
  return value
end

-- Absent fields of a plain table, too.
local function whole(row, keys)
  for _, key in ipairs(keys) do row[key] = or_null(row[key]) end
  return row
end

local function running_pipeline()
  for _, kind in ipairs { "shutdown", "startup" } do
    local pipeline = require("moontide." .. kind)
    local run = pipeline.run_state
    if run and not run.over then return pipeline end
  end
end

local PIPELINE = { "kind", "total", "used", "left" }
local PHASE = { "budget", "used", "slack" }

local function collect_pipeline(status)
  status.phases, status.pipeline = json.array {}, null
  local pipeline = running_pipeline()
  if not pipeline then return end
  local data = require("moontide.console.inspect.phases").of(pipeline)
  local brief = {}
  for _, key in ipairs(PIPELINE) do brief[key] = or_null(data[key]) end
  status.pipeline = brief
  for _, row in ipairs(data.phases) do
    if row.status == "running" then
      status.phases[#status.phases + 1] = whole({
        pipeline = data.kind, name = row.name, budget = row.budget, used = row.used,
        slack = row.slack, running = row.running,
      }, PHASE)
    end
  end
end

local CHECK = { "ok", "message", "age", "latency" }

local function collect_checks(status)
  status.checks = json.array {}
  for i, row in ipairs(require("moontide.console.inspect.checks").list()) do
    status.checks[i] = whole(row, CHECK)
  end
end

local function collect_traffic(status)
  local conns = require "moontide.console.inspect.conns"
  local kinds, active = require("moontide.console.inspect.work").list()
  status.in_flight = { active = active, kinds = kinds }
  status.listeners = json.array {}
  for i, server in ipairs(conns.servers()) do
    local listener = conns.of(server, 0)
    listener.list = nil
    status.listeners[i] = listener
  end
end

-- How late the loop is now; nil where nobody can wait for it.
local function lag_now()
  if not require("moontide.console.inspect.walk").can_wait() then return nil end
  return require("moontide.observe.loop_lag").measure(0.001)
end

local function collect_process(status, late)
  local core = require "moontide.core"
  local mem = require("moontide.console.inspect.mem").collect()
  local lag = package.loaded["moontide.observe.loop_lag"]
  local sessions = package.loaded["moontide.console.session"]
  status.tasks = require("moontide.task").counts()
  status.memory = { lua = mem.lua, resident = or_null(mem.resident) }
  status.loop_lag = {
    now = or_null(late), looks = lag and lag.count or 0, last = or_null(lag and lag.last),
    max = lag and lag.max or 0,
  }
  status.log_dropped = core.log.dropped()
  status.sessions = sessions and sessions.count() or 0
end

local REASON = { "signal", "pid", "uid", "program" }

local function collect_state(status)
  local core = require "moontide.core"
  local why = require "moontide.console.inspect.why"
  local uptime = require("moontide.core.look").uptime()
  local moved_at = require("moontide.states").moved_at
  local ready, probes = core.health.ready()
  local reason = why.reason(require("moontide.shutdown").reason)
  status.uptime = uptime
  status.state = core.state.get()
  status.state_seconds = moved_at and core.clock.now() - moved_at or uptime
  status.since = core.clock.wall() - status.state_seconds
  status.ready, status.probes = ready, probes or (ready and "ready" or "not_ready")
  status.reason = reason and whole(reason, REASON) or null
  status.waiting_for = why.waiting_for()
end

--- Looks at the process; in any state. A task waits for a timer of 1 ms; without one it does not.
---@return moontide.Status
function M.collect()
  local core, late = require "moontide.core", lag_now() -- first: all else is of one moment
  local status = {
    name = require("moontide.config").get "name" or core.host.name or "unnamed",
    pid = core.host.pid, version = core.host.version, mode = core.host.mode,
  }
  collect_state(status)
  collect_pipeline(status)
  collect_checks(status)
  collect_traffic(status)
  collect_process(status, late)
  return status
end

return M
