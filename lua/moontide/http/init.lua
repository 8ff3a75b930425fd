--- HTTP: `tide.http.listen { name = "api", port = 8080 }`.
---
--- The work is done in C (core/http/); here are declarations, and what starts and drains a
--- listener with the rest of the process.

local core = require "moontide.core"
local config = require "moontide.config"
local duration = require "moontide.duration"
local servers = require "moontide.http.server"
local lazy = require "moontide.lazy"

local dispatch = lazy "moontide.http.dispatch"
local bounds = lazy "moontide.http.bounds"
local draining = lazy "moontide.http.draining"
local events = lazy "moontide.http.events"
local options = lazy "moontide.http.options"
local http = core.http
local M = {}

---@type moontide.Server[] of the application
M.servers = {}

local LIMITS = {
  "request_line", "headers", "header_field", "header_count", "trailers", "trailer_count",
  "chunk_extensions", "body", "requests_per_connection", "write_buffer",
}
local TIMEOUTS = {
  "header", "idle", "body_idle", "body_min_rate", "request_total", "write_stall", "accept_drain",
  "first_byte_grace", "header_in_drain", "write_min_rate", "lingering_idle", "lingering_total",
}

-- ---- options ----------------------------------------------------------------------------------

-- A name and a port, which is what most say: checked without the words for all that can be wrong.
local function is_plain(opts)
  if type(opts) ~= "table" then return false end
  for key, value in next, opts do
    if key == "port" then
      if math.type(value) ~= "integer" or value < 0 or value > 65535 then return false end
    elseif key ~= "name" or type(value) ~= "string" then
      return false
    end
  end
  return opts.port ~= nil
end

local function for_core(opts)
  return {
    name = opts.name, host = opts.port and (opts.host or "127.0.0.1") or nil,
    port = opts.port, path = opts.path, backlog = opts.backlog, reuse_port = opts.reuseport,
    v6_only = opts.v6only, early = opts.accept == "early", reject_in_drain = opts.reject_in_drain,
  }
end

-- Limits and timeouts: the listener's own, else those of the configuration.
local function settings(server)
  local opts = server.opts
  local all = {}
  for _, key in ipairs(LIMITS) do
    all[key] = opts.limits and opts.limits[key] or config.get("limits." .. key)
  end
  for _, key in ipairs(TIMEOUTS) do
    all[key] = opts.timeouts and opts.timeouts[key] or config.get("timeouts." .. key)
  end
  all.stream_grace = opts.stream_grace and duration.parse(opts.stream_grace)
    or config.get("timeouts.stream_grace")
  all.idle_close_spread = opts.idle_close_spread and options.spread(opts, server.site)
  all.backlog = opts.backlog or config.get("limits.backlog")
  all.health = config.get("manage") == "api"
  return all
end

-- ---- draining ---------------------------------------------------------------------------------

-- What a shutdown does with it is loaded when that begins.
local function register(server)
  local shutdown = require "moontide.shutdown"
  if shutdown.sealed and not config.get "shutdown.auto_register_tasks" then return end
  shutdown:builtin_task("service-unbind", "unbind:" .. server.name, function()
    draining.unbind(server)
  end)
  shutdown:builtin_task("service-requests-done", "drain:" .. server.name, function()
    draining.drain(server)
  end, { detail = function() return draining.detail(server) end })
  -- One that is declared in a phase of the startup comes after the sealing.
  if shutdown.sealed then require("moontide.shutdown.builtin").register_linger(shutdown) end
end

local function watch_state()
  if M.watching then return end
  M.watching = true
  require("moontide.states").on_state(function(_, to)
    if to == "draining" then events.draining:set(true) end
  end)
end

-- ---- listening --------------------------------------------------------------------------------

local function must(ok, message)
  if not ok then error(message, 0) end
end

-- The time that a handler may take, where its route says nothing.
local function limit_handlers(server)
  local own = server.opts.handler_timeout
  local seconds = own and duration.parse(own) or config.get("timeouts.handler")
  if seconds > 0 then
    dispatch.limit_others(server.routes, seconds, own and "handler_timeout" or "timeouts.handler")
  end
end

-- The process that we follow, if there is one.
local function predecessor()
  local takeover = package.loaded["moontide.takeover"]
  return takeover and takeover.following and takeover
end

local function bind(server)
  local takeover = predecessor()
  local given = settings(server)
  server:compose()
  limit_handlers(server)
  for _, part in ipairs(server.parts or {}) do part:open() end
  if not (takeover and takeover.adopt(server)) and server.opts.fd then
    given.fd = options.inherited(server.opts)
  end
  http.configure(server.listener, given)
  must(http.bind(server.listener))
  server.bound = true
  core.log.write(0, "http", "bound", "listener", server.name, "address", (server:address()))
end

local function listen(server)
  if server.listening then return end
  must(http.listen(server.listener))
  server.listening = true
  core.log.write(1, "http", "listening", "listener", server.name, "address", (server:address()))
end

local function check_name(name)
  if name == "" or name == "manage" then
    error(("tide.http.listen: %s"):format(name == "" and "the name is empty"
      or "\"manage\" is the name of the management listener"), 3)
  end
  for _, other in ipairs(M.servers) do
    if other.name == name then
      error(("tide.http.listen: a listener named %q is declared already; give each a name"):format(
        name), 3)
    end
  end
end

---@class moontide.ListenOptions
---@field name string|nil default "http"
---@field host string|nil default 127.0.0.1; "::" is all interfaces, for IPv4 clients as well
---@field v6only boolean|nil with host "::": no IPv4 clients
---@field port integer|nil 0: any free one
---@field path string|nil of a Unix socket
---@field fd string|nil name of an inherited socket; the port beside it is opened where none is
--- inherited, which is an error else
---@field backlog integer|nil 1 to 65535; default limits.backlog
---@field reuseport boolean|nil other processes of this user may listen there, too
---@field accept "early"|"ready"|nil
---@field limits moontide.ListenLimits|nil
---@field timeouts moontide.ListenTimeouts|nil
---@field stream_grace number|string|nil until streams are ended, from the start of a drain
---@field handler_timeout number|string|nil 503 for handlers that take longer; not for streams
---@field cancel_on_disconnect boolean|nil whether a handler ends with its client; nil: of streams
---@field reject_in_drain boolean|nil 503 for requests that come once the listener is closed
---@field idle_close_spread number|string|nil over which idle ones are closed
---@field linger_adaptive boolean|nil the linger may end early, when nobody is left to tell

--- Declares a listener. It is bound when the pipelines are sealed and accepts from the phase
--- `listener` on, or just before ready.
---@param opts moontide.ListenOptions
---@return moontide.Server
function M.listen(opts)
  if not is_plain(opts) then options.check(opts) end
  if M.opened and core.state.get() ~= "starting" then
    error("tide.http.listen: listeners are declared before the process is ready", 2)
  end
  local name = opts.name or "http"
  check_name(name)
  local given = {}
  for key, value in pairs(opts) do given[key] = value end
  given.name = name
  given.limits = opts.limits and bounds.read(opts.limits, "limits", LIMITS, 2)
  given.timeouts = opts.timeouts and bounds.read(opts.timeouts, "timeouts", TIMEOUTS, 2)
  local server = servers.new(for_core(given))
  server.opts = given
  if given.idle_close_spread then server.site = require("moontide.site").caller() end
  M.servers[#M.servers + 1] = server
  register(server)
  watch_state()
  return server
end

--- What can be judged only when all of the configuration is known, before anything is bound.
---@return string[]
function M.errors()
  local list = {}
  for _, server in ipairs(M.servers) do
    if server.opts.idle_close_spread then
      list[#list + 1] = options.wrong_spread(server.opts, server.site)
    end
  end
  return list
end

--- Binds all sockets; raises for one that cannot be.
function M.bind_all()
  http.limits(config.get("limits.connections"), config.get("limits.in_flight"))
  for _, server in ipairs(M.servers) do
    if not server.bound then bind(server) end
  end
end

--- Ends a handler with this answer: `tide.http.error(404, "no such order")`.
---@param status integer
---@param message string|nil
function M.error(status, message)
  if math.type(status) ~= "integer" or status < 200 or status > 599 then
    error("tide.http.error: the status is a whole number from 200 to 599, not "
      .. tostring(status), 2)
  end
  if message ~= nil and type(message) ~= "string" then
    error("tide.http.error: the message is a string, not a " .. type(message), 2)
  end
  require("moontide.http.exchange").raise(status, message)
end

--- Long work: goes before the handler of a route; see accepted.lua.
---@param opts moontide.AcceptedOptions|nil
---@return moontide.Accepted
function M.accepted(opts)
  return require("moontide.http.accepted").new(opts)
end

--- A route that answers each Idempotency-Key once; see idempotent.lua.
---@param opts moontide.IdempotentOptions|nil
---@return moontide.Idempotent
function M.idempotent(opts)
  return require("moontide.http.idempotent").new(opts)
end

--- Where jobs and answers are kept: `store.memory {}`, `store.sqlite("jobs.db")`.
M.store = lazy "moontide.http.store"

--- Accepts connections from now on; again harmless. Where another process serves until we are
--- ready (`reuseport`, a takeover), only when that is so.
---@param ready boolean|nil
function M.listen_all(ready)
  M.bind_all()
  M.opened = true
  local waits = predecessor() and not ready
  for _, server in ipairs(M.servers) do
    if ready or not (waits or server.opts.reuseport) then listen(server) end
  end
  local manage = package.loaded["moontide.http.manage"]
  if ready then
    if manage then
      manage.listen()
      manage.announce()
    end
    if core.notify.listen_fds()[1] then options.warn_of_unused(M.servers) end
  end
end

--- Whether an application listener is declared.
---@return boolean
function M.has_listener()
  return #M.servers > 0
end

--- Opens the management listener, if the configuration wants one.
function M.manage_open()
  require("moontide.http.manage").open()
end

function M.manage_close()
  require("moontide.http.manage").close()
end

--- What the drains came to so far, by listener.
---@return moontide.DrainReport[]
function M.drain_reports()
  return draining.reports(M.servers)
end

--- Ends the requests that no drain has waited for.
---@param why string
function M.break_off(why)
  if #M.servers > 0 then draining.break_off(M.servers, why) end
end

--- Requests that the drains ended by force.
---@return integer
function M.forced()
  local sum = 0
  for _, report in ipairs(M.drain_reports()) do sum = sum + report.forced end
  return sum
end

--- Numbers for metrics: see core/lua/http.c.
M.stats = http.stats

return M
