--- HTTP: `tide.http.listen { name = "api", port = 8080 }`.
---
--- The work is done in C (core/http/); here are declarations, and what starts and drains a
--- listener with the rest of the process.

local core = require "moontide.core"
local config = require "moontide.config"
local duration = require "moontide.duration"
local events = require "moontide.http.events"
local servers = require "moontide.http.server"
local lazy = require "moontide.lazy"

local dispatch = lazy "moontide.http.dispatch"
local bounds = lazy "moontide.http.bounds"
local draining = lazy "moontide.http.draining"
local suggest = lazy "moontide.suggest"
local http = core.http
local M = {}

---@type moontide.Server[] of the application
M.servers = {}

local OPTIONS = {
  name = "string", host = "string", port = "integer", path = "string", fd = "string",
  accept = "string", reuseport = "boolean", v6only = "boolean", reject_in_drain = "boolean",
  backlog = "integer",
  limits = "table", timeouts = "table", stream_grace = "duration", handler_timeout = "duration",
  cancel_on_disconnect = "boolean", idle_close_spread = "duration", linger_adaptive = "boolean",
}
local LIMITS = {
  "request_line", "headers", "header_field", "header_count", "trailers", "trailer_count",
  "chunk_extensions", "body", "requests_per_connection", "write_buffer",
}
local TIMEOUTS = {
  "header", "idle", "body_idle", "body_min_rate", "request_total", "write_stall", "accept_drain",
  "first_byte_grace", "header_in_drain", "write_min_rate", "lingering_idle", "lingering_total",
}

-- ---- options ----------------------------------------------------------------------------------

local function type_of(value)
  return math.type(value) == "integer" and "integer" or type(value)
end

local function keys(t)
  local list = {}
  for key in pairs(t) do list[#list + 1] = key end
  table.sort(list)
  return list
end

local function check_types(opts)
  for key, value in pairs(opts) do
    local want = OPTIONS[key]
    if not want then
      error(suggest.unknown("option of tide.http.listen", tostring(key), keys(OPTIONS)), 4)
    elseif want == "duration" then
      duration.check(value, "tide.http.listen: " .. key, 4)
    elseif type_of(value) ~= want then
      error(("tide.http.listen: %s is a%s %s, not %s"):format(key, want == "integer" and "n" or "",
        want, tostring(value)), 4)
    end
  end
end

-- Options that go only with some others.
local function check_places(opts)
  if not (opts.port or opts.path or opts.fd) then
    error("tide.http.listen: one of port, path and fd says where to listen", 4)
  end
  if opts.reuseport and not opts.port then
    error("tide.http.listen: reuseport is for a port; a Unix socket and an inherited one have one "
      .. "holder", 4)
  end
  if opts.reuseport and opts.accept == "early" then
    error("tide.http.listen: a reuseport listener takes traffic only from ready on, so accept = "
      .. "\"early\" does not go with it", 4)
  end
  if opts.v6only ~= nil and not (opts.host or ""):find(":", 1, true) then
    error("tide.http.listen: v6only is for an IPv6 host, such as host = \"::\"", 4)
  end
end

local function check(opts)
  if type(opts) ~= "table" then error("tide.http.listen: a table of options is wanted", 3) end
  check_types(opts)
  if opts.port and (opts.port < 0 or opts.port > 65535) then
    error(("tide.http.listen: port %d is not between 0 and 65535"):format(opts.port), 3)
  end
  check_places(opts)
  if opts.accept and opts.accept ~= "early" and opts.accept ~= "ready" then
    error(("tide.http.listen: accept is \"early\" or \"ready\", not %q"):format(opts.accept), 3)
  end
end

-- An inherited socket by its name (LISTEN_FDNAMES).
local function inherited(name)
  local known = {}
  for _, entry in ipairs(core.notify.listen_fds()) do
    if entry.name == name then return entry.fd end
    known[#known + 1] = entry.name
  end
  error(("tide.http.listen: no inherited socket is named %q (%s)"):format(name,
    #known > 0 and "there are " .. table.concat(known, ", ") or "none was inherited"), 0)
end

local function for_core(opts)
  return {
    name = opts.name, host = not (opts.path or opts.fd) and (opts.host or "127.0.0.1") or nil,
    port = opts.port, path = opts.path, backlog = opts.backlog, reuse_port = opts.reuseport,
    v6_only = opts.v6only, early = opts.accept == "early", reject_in_drain = opts.reject_in_drain,
  }
end

-- Over how long a drain closes idle connections: the drain must not end before.
local function spread(opts)
  local seconds = opts.idle_close_spread and duration.parse(opts.idle_close_spread)
  local drain = config.get("shutdown.drain")
  if seconds and seconds > 0 and seconds >= drain then
    error(("tide.http.listen: idle_close_spread %s must be shorter than shutdown.drain, %s"):format(
      duration.format(seconds), duration.format(drain)), 0)
  end
  return seconds
end

-- Limits and timeouts: the listener's own, else those of the configuration.
local function settings(opts)
  local all = {}
  for _, key in ipairs(LIMITS) do
    all[key] = opts.limits and opts.limits[key] or config.get("limits." .. key)
  end
  for _, key in ipairs(TIMEOUTS) do
    all[key] = opts.timeouts and opts.timeouts[key] or config.get("timeouts." .. key)
  end
  all.stream_grace = opts.stream_grace and duration.parse(opts.stream_grace)
    or config.get("timeouts.stream_grace")
  all.idle_close_spread = spread(opts)
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
  local given = settings(server.opts)
  server:compose()
  limit_handlers(server)
  for _, part in ipairs(server.parts or {}) do part:open() end
  if not (takeover and takeover.adopt(server)) and server.opts.fd then
    given.fd = inherited(server.opts.fd)
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
---@field fd string|nil name of an inherited socket
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
  check(opts)
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
  M.servers[#M.servers + 1] = server
  register(server)
  watch_state()
  return server
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
---@param message string
function M.error(status, message)
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

-- Clients of a socket that nobody takes would wait for ever.
local function warn_of_unused()
  local taken = {}
  for _, server in ipairs(M.servers) do taken[server.opts.fd or false] = true end
  for _, entry in ipairs(core.notify.listen_fds()) do
    if not taken[entry.name] then
      core.log.write(2, "http", ("no listener takes the inherited socket %q: tide.http.listen { fd "
        .. "= %q }"):format(entry.name, entry.name))
    end
  end
end

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
    if manage then manage.listen() end
    warn_of_unused()
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
---@return { listener: string, served: integer, closed_idle: integer, queued: integer,
---  drained: integer, forced: integer, requests: table[] }[]
function M.drain_reports()
  local list = {}
  for _, server in ipairs(M.servers) do
    local report = http.report(server.listener)
    if report then
      report.listener = server.name
      list[#list + 1] = report
    end
  end
  return list
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
