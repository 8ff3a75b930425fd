--- What a shutdown does with a listener: it is unbound, then its requests are waited for.

local core = require "moontide.core"
local config = require "moontide.config"
local events = require "moontide.http.events"
local task = require "moontide.task"

local http = core.http
local M = {}

--- Unbinds it, the accept queue first.
---@async
---@param server moontide.Server
function M.unbind(server)
  events.complete(server.listener, false, http.unbind)
end

local function drained(server)
  events.complete(server.listener, true, http.drain)
end

-- The 503s of a force leave within this time, or not at all.
local function flush(server)
  if http.counts(server.listener) == 0 then return end
  pcall(task.timeout, config.get("timeouts.force_flush"), drained, server)
end

--- Waits for shutdown.drain, or until its phase ends; then what is left is ended by force.
---@async
---@param server moontide.Server
function M.drain(server)
  local ok = pcall(task.timeout, config.get("shutdown.drain"), drained, server)
  if ok then return end
  local forced = http.force(server.listener, "drain timeout")
  local room = require "moontide.http"
  room.forced = room.forced + forced
  core.log.write(2, "http", "the drain was ended by force", "listener", server.name, "forced",
    forced)
  flush(server)
  task.sleep(0) -- raises if the phase has ended
end

--- What the drain waits for.
---@param server moontide.Server
---@return string
function M.detail(server)
  local busy, in_flight = http.counts(server.listener)
  return ("http:%s drain, %d requests, %d connections"):format(server.name, in_flight, busy)
end

return M
