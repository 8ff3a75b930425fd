--- A status as one screen of text. Pure: the client shows with it what it was sent.
local null = require("moontide.json").null
local view = require "moontide.view"

local M = {}

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
