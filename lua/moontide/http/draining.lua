--- What a shutdown does with a listener: it is unbound, then its requests are waited for.

local core = require "moontide.core"
local config = require "moontide.config"
local events = require "moontide.http.events"
local patience = require "moontide.shutdown.patience"
local task = require "moontide.task"

local http = core.http
local M = {}

--- Unbinds it, the accept queue first.
---@async
---@param server moontide.Server
function M.unbind(server)
  events.complete(server.listener, false, http.unbind)
end

-- How long nobody may have come before an adaptive linger ends.
local QUIET = 1
-- Between two looks of it.
local LOOK = 0.1

local function may_end(servers)
  for _, server in ipairs(servers) do
    if not (server.opts.linger_adaptive and http.quiet(server.listener, QUIET)) then
      return false
    end
  end
  return true
end

--- Lets everything go on for so long; less where all listeners are adaptive and nobody is left who
--- could be told to go.
---@async
---@param servers moontide.Server[]
---@param seconds number
function M.linger(servers, seconds)
  local till = core.clock.now() + seconds
  for _, server in ipairs(servers) do
    if not server.opts.linger_adaptive then return task.sleep(seconds) end
  end
  while core.clock.now() < till do
    if may_end(servers) then
      core.log.write(1, "http", "the linger ends early: no client is left to tell")
      return
    end
    task.sleep(math.min(LOOK, till - core.clock.now()))
  end
end

local function drained(server)
  events.complete(server.listener, true, http.drain)
end

-- The 503s of a force leave within this time; what is not taken by then is reset.
local function flush(server)
  if http.counts(server.listener) > 0 then
    pcall(task.timeout, config.get("timeouts.force_flush"), drained, server)
  end
  return http.reset(server.listener)
end

local function report(server, started_at)
  local r = http.report(server.listener)
  if not r then return end -- ended before it began
  core.log.write(r.forced > 0 and 2 or 1, "http", "drained", "listener", server.name,
    "served", r.served, "closed_idle", r.closed_idle, "drained", r.drained, "forced", r.forced,
    "duration_ms", math.floor((core.clock.now() - started_at) * 1000 + 0.5))
end

--- Waits for shutdown.drain, or until its phase ends; then what is left is ended by force.
---@async
---@param server moontide.Server
function M.drain(server)
  local started_at = core.clock.now()
  local ok = patience.wait("service-requests-done", config.get("shutdown.drain"), drained, server)
  if not ok then
    local forced = http.force(server.listener, "drain timeout") + flush(server)
    core.log.write(2, "http", "the drain was ended by force", "listener", server.name, "forced",
      forced)
  end
  report(server, started_at)
  if not ok then task.sleep(0) end -- raises if the phase has ended
end

--- Ends what is there when the shutdown has not waited for it: it was cut short, or told to skip
--- the drain.
---@param servers moontide.Server[]
---@param why string
function M.break_off(servers, why)
  for _, server in ipairs(servers) do
    if http.counts(server.listener) > 0 then
      http.force(server.listener, why)
      report(server, core.clock.now())
    end
  end
end

---@class moontide.DrainReport
---@field listener string
---@field served integer
---@field closed_idle integer
---@field queued integer
---@field drained integer
---@field forced integer
---@field requests table[] those that were ended by force

--- What the drains came to so far, by listener.
---@param servers moontide.Server[]
---@return moontide.DrainReport[]
function M.reports(servers)
  local list = {}
  for _, server in ipairs(servers) do
    local r = http.report(server.listener)
    if r then
      r.listener = server.name
      list[#list + 1] = r
    end
  end
  return list
end

--- What the drain waits for.
---@param server moontide.Server
---@return string
function M.detail(server)
  local busy, in_flight = http.counts(server.listener)
  return ("http:%s drain, %d requests, %d connections"):format(server.name, in_flight, busy)
end

return M
