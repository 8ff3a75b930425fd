--- The process in one screen: collected by the host, shown by whoever asked.
---
--- `collect` returns the same keys in every state; what is not known is `json.null`, lists are
--- lists also when they are empty. `text` is pure: the client shows with it what it was sent.
local json = require "moontide.json"
local view = require "moontide.view"

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

-- ---- collecting ---------------------------------------------------------------------------------

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

-- ---- showing ------------------------------------------------------------------------------------

local WIDTH, HEIGHT = 80, 24

local COLOURS = { good = "32", bad = "31", doubtful = "33" }
local OF_STATE = { ready = "good", starting = "doubtful", draining = "doubtful", stopped = "bad" }

-- What is known, or nil.
local function known(value)
  if value == null then return nil end
  return value
end

local function head_lines(status, put, paint)
  local colour = OF_STATE[status.state]
  local state = status.state
  if state == "ready" and status.probes ~= "ready" then
    state, colour = ("ready, probes are told %s"):format(status.probes), "bad"
  end
  put(("%s %s"):format(view.cut(status.name, 40), paint(state, colour)))
  put(("  pid %d, moontide %s, up %s, %s for %s"):format(status.pid, status.version,
    view.time(status.uptime), status.state, view.time(status.state_seconds)))
  local reason = known(status.reason)
  if reason then
    local program = known(reason.program)
    put("  shuts down: " .. reason.text .. (program and ", sent by " .. program or ""))
  end
end

-- Lines under a heading, so many at most; what is beyond is counted.
local function section(put, heading, lines, most)
  if #lines == 0 then return end
  local shown = #lines > most and most - 1 or #lines
  put(heading)
  for i = 1, shown do put("  " .. lines[i]) end
  if shown < #lines then put("  " .. view.more(#lines - shown)) end
end

local function pipeline_lines(status)
  local lines, pipeline = {}, known(status.pipeline)
  for _, phase in ipairs(status.phases) do
    local slack = known(phase.slack)
    lines[#lines + 1] = ("phase %s: %s of %s%s"):format(phase.name, view.time(known(phase.used)),
      known(phase.budget) and view.time(phase.budget) or "what is left",
      slack and ", slack " .. view.time(slack) or "")
  end
  if not pipeline then return nil, lines end
  local left = known(pipeline.left)
  return ("%s: %s of %s%s"):format(pipeline.kind, view.time(known(pipeline.used)),
    view.time(known(pipeline.total)), left and ", left " .. view.time(left) or ""), lines
end

local function waiting_lines(status)
  local lines = {}
  for _, line in ipairs(status.waiting_for) do
    for i, piece in ipairs(view.wrap(line, WIDTH - 4, 2)) do
      lines[#lines + 1] = i == 1 and piece or "  " .. piece
    end
  end
  return lines
end

local function check_lines(status, paint)
  local lines = {}
  for _, bad in ipairs { true, false } do -- those that are not ok come first
    for _, row in ipairs(status.checks) do
      if (row.ok == false) == bad then
        local message, age = known(row.message), known(row.age)
        local colour = row.ok == true and "good" or row.ok == false
          and (row.critical and "bad" or "doubtful") or "doubtful"
        lines[#lines + 1] = ("%s %s%s%s%s"):format(row.name, paint(row.state, colour),
          row.critical and "" or ", not critical", age and ", " .. view.time(age) .. " ago" or "",
          message and ": " .. message or "")
      end
    end
  end
  return lines
end

local function listener_lines(status)
  local lines = {}
  for i, listener in ipairs(status.listeners) do
    lines[i] = ("%s %s: %s, %d in flight"):format(listener.name, listener.address,
      view.count(listener.connections, "connection"), listener.in_flight)
  end
  return lines
end

local function flight_lines(status)
  local lines, of_listener = {}, {}
  for _, listener in ipairs(status.listeners) do of_listener["http:" .. listener.name] = true end
  for _, kind in ipairs(status.in_flight.kinds) do
    if kind.active > 0 and not of_listener[kind.name] then
      lines[#lines + 1] = ("%s: %d"):format(kind.name, kind.active)
    end
  end
  return lines
end

local function lag_text(lag)
  local now = known(lag.now)
  local parts = { now and ("%.1f ms"):format(now * 1000) }
  if lag.looks > 0 then parts[#parts + 1] = "at most " .. view.time(lag.max) end
  return #parts > 0 and table.concat(parts, ", ") or "not looked at"
end

local function foot_lines(status, put)
  local tasks = status.tasks
  put(("tasks %d (%d ready, %d waiting), memory %s, of Lua %s"):format(tasks.live, tasks.ready,
    tasks.waiting, view.bytes(known(status.memory.resident)), view.bytes(status.memory.lua)))
  put(("loop lag %s, log records lost %d, console sessions %d"):format(
    lag_text(status.loop_lag), status.log_dropped, status.sessions))
end

local function painter(color)
  return function(text, name)
    local code = color and COLOURS[name]
    return code and ("\27[%sm%s\27[0m"):format(code, text) or text
  end
end

-- A line as wide as the screen at most; one with colours was made narrow enough by its parts.
local function fit(line)
  if line:find("\27", 1, true) then
    local plain = line:gsub("\27%[%d+m", "")
    if utf8.len(plain) and utf8.len(plain) <= WIDTH then return line end
    return view.cut(plain, WIDTH)
  end
  return view.cut(line, WIDTH)
end

--- One screen: at most 24 lines of 80 columns.
---@param status moontide.Status
---@param opts { color: boolean|nil }|nil
---@return string text without a newline at its end
function M.text(status, opts)
  local lines, paint = {}, painter(opts and opts.color)
  local function put(line) lines[#lines + 1] = fit(line) end
  head_lines(status, put, paint)
  local heading, phases = pipeline_lines(status)
  if heading then put(heading) end
  for i = 1, math.min(#phases, 2) do put("  " .. phases[i]) end
  section(put, "waiting for", waiting_lines(status), 4)
  section(put, "checks", check_lines(status, paint), 4)
  section(put, "listeners", listener_lines(status), 3)
  local flight = flight_lines(status)
  if #flight > 0 then put("in flight beside requests: " .. table.concat(flight, ", ")) end
  foot_lines(status, put)
  assert(#lines <= HEIGHT, "the status is longer than a screen")
  return table.concat(lines, "\n")
end

return M
