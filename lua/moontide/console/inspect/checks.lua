--- `checks()`: the readiness checks and the heartbeats, each with its last result.
local arguments = require "moontide.console.inspect.arguments"
local core = require "moontide.core"
local json = require "moontide.json"
local view = require "moontide.view"

local M = {}

---@class moontide.inspect.Check
---@field name string
---@field kind "check"|"heartbeat"
---@field state "ok"|"not ok"|"stale"|"no result"
---@field ok boolean|nil what probes are told; nil: nothing yet
---@field critical boolean without it the process is not ready
---@field message string|nil why it is not ok
---@field age number|nil seconds since the last result, or beat
---@field latency number|nil seconds that it took
---@field every number seconds
---@field good integer|nil results in a row that were ok
---@field bad integer|nil that were not
---@field successes integer|nil how many turn it back
---@field failures integer|nil how many turn it

local function of_check(check, now)
  local opts = check.opts
  local row = {
    name = check.name, kind = "check", ok = check.ok, critical = opts.critical,
    message = check.message, latency = check.latency, every = opts.every, timeout = opts.timeout,
    good = check.good, bad = check.bad, successes = opts.successes, failures = opts.failures,
    age = check.at and now - check.at or nil,
  }
  if check.ok == nil then
    row.state = "no result"
  elseif check.expires_at and now > check.expires_at then
    row.state, row.ok = "stale", false
  else
    row.state = check.ok and "ok" or "not ok"
  end
  return row
end

local function of_heartbeat(name, beat)
  local silent = beat.begun and core.clock.now() > beat.due
  local row = {
    name = name, kind = "heartbeat", critical = beat.opts.critical, age = beat:age(),
    every = beat.opts.every, stale_after = beat.opts.stale_after,
  }
  if beat.begun then row.ok = not silent end
  row.state = not beat.begun and "no result" or silent and "stale" or "ok"
  return row
end

--- All of them, by name; in any state, and without a task.
---@return moontide.inspect.Check[]
function M.list()
  local now, list = core.clock.now(), json.array {}
  -- Only a script that has some has loaded the room.
  local readiness, heartbeat = package.loaded["moontide.readiness"],
    package.loaded["moontide.heartbeat"]
  for _, check in pairs(readiness and readiness.all() or {}) do
    list[#list + 1] = of_check(check, now)
  end
  for name, beat in pairs(heartbeat and heartbeat.all() or {}) do
    list[#list + 1] = of_heartbeat(name, beat)
  end
  table.sort(list, function(a, b)
    if a.name ~= b.name then return a.name < b.name end
    return a.kind < b.kind
  end)
  return list
end

--- What keeps the process from being ready: critical ones that are not ok.
---@param list moontide.inspect.Check[]
---@return moontide.inspect.Check[]
function M.failing(list)
  local failing = {}
  for _, row in ipairs(list) do
    if row.critical and row.ok == false then failing[#failing + 1] = row end
  end
  return failing
end

--- "3 not ok in a row, 1 more turns it": how far a check is from changing.
---@param row moontide.inspect.Check
---@return string
function M.turning(row)
  if row.kind == "heartbeat" then return "stale after " .. view.time(row.stale_after) end
  local count = row.bad > 0 and row.bad or row.good
  if count == 0 then return "-" end
  local word = row.bad > 0 and "not ok" or "ok"
  local needed = row.bad > 0 and row.failures or row.successes
  if row.ok == (row.bad == 0) then return ("%d %s"):format(count, word) end
  return ("%d of %d %s"):format(count, needed, word)
end

local function render(data)
  local rows = {}
  for i, row in ipairs(data.checks) do
    rows[i] = {
      row.kind == "heartbeat" and row.name .. " (heartbeat)" or row.name, row.state,
      row.critical and "yes" or "no", view.time(row.age), view.time(row.latency),
      view.time(row.every), M.turning(row), row.message or "",
    }
  end
  return view.lines("probes are told: " .. data.probes, #rows == 0 and "no checks" or
    view.columns({ "check", "", "critical", ">age", ">took", ">every", "in a row", "why" }, rows))
end

---@return { probes: string, ready: boolean, checks: moontide.inspect.Check[] }
function M.checks(...)
  arguments.none("checks", ...)
  local ready, status = core.health.ready()
  return view.new({ ready = ready, probes = status or "?", checks = M.list() }, render)
end

return M
