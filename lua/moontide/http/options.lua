--- The options of `tide.http.listen`, and what is wrong with some. Loaded with the first listener
--- that says more than a name and a port.

local config = require "moontide.config"
local core = require "moontide.core"
local duration = require "moontide.duration"
local suggest = require "moontide.suggest"

local M = {}

local OPTIONS = {
  name = "string", host = "string", port = "integer", path = "string", fd = "string",
  accept = "string", reuseport = "boolean", v6only = "boolean", reject_in_drain = "boolean",
  backlog = "integer",
  limits = "table", timeouts = "table", stream_grace = "duration", handler_timeout = "duration",
  cancel_on_disconnect = "boolean", idle_close_spread = "duration", linger_adaptive = "boolean",
}

-- Places, of which a listener has one; but an inherited socket may have a port beside it, for where
-- none is inherited.
local APART = { { "port", "path" }, { "path", "fd" }, { "host", "path" }, { "host", "fd" } }
-- What the kernel has room for (sun_path), without the zero.
local LONGEST_PATH = 107

local function type_of(value)
  return math.type(value) == "integer" and "integer" or type(value)
end

local function check_types(opts)
  for key, value in pairs(opts) do
    local want = OPTIONS[key]
    if not want then
      error(suggest.unknown("option of tide.http.listen", tostring(key), suggest.names(OPTIONS)), 4)
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
  for _, pair in ipairs(APART) do
    local both = opts[pair[1]] ~= nil and opts[pair[2]] ~= nil
    if both and not (pair[2] == "fd" and opts.port) then
      error(("tide.http.listen: %s and %s are two places; give each a listener of its own"):format(
        pair[1], pair[2]), 4)
    end
  end
  if opts.path and (opts.path == "" or #opts.path > LONGEST_PATH) then
    error(("tide.http.listen: the path of a Unix socket has 1 to %d bytes, not %d"):format(
      LONGEST_PATH, #opts.path), 4)
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

--- Raises what is wrong with them, at the line that calls its caller.
---@param opts moontide.ListenOptions
function M.check(opts)
  if type(opts) ~= "table" then error("tide.http.listen: a table of options is wanted", 3) end
  check_types(opts)
  for _, key in ipairs { "fd", "host" } do
    if opts[key] == "" then error(("tide.http.listen: %s is empty"):format(key), 3) end
  end
  if opts.backlog and (opts.backlog < 1 or opts.backlog > 65535) then
    error(("tide.http.listen: backlog %d is not between 1 and 65535"):format(opts.backlog), 3)
  end
  if opts.port and (opts.port < 0 or opts.port > 65535) then
    error(("tide.http.listen: port %d is not between 0 and 65535"):format(opts.port), 3)
  end
  check_places(opts)
  if opts.accept and opts.accept ~= "early" and opts.accept ~= "ready" then
    error(("tide.http.listen: accept is \"early\" or \"ready\", not %q"):format(opts.accept), 3)
  end
end

--- An inherited socket by its name (LISTEN_FDNAMES).
---@param opts moontide.ListenOptions
---@return integer|nil fd nil: there is none, and they say where to listen then
function M.inherited(opts)
  local name, known = opts.fd, {}
  for _, entry in ipairs(core.notify.listen_fds()) do
    if entry.name == name then return entry.fd end
    known[#known + 1] = entry.name
  end
  if opts.port then return nil end
  error(("tide.http.listen: no inherited socket is named %q (%s)"):format(name,
    #known > 0 and "there are " .. table.concat(known, ", ") or "none was inherited"), 0)
end

--- What is wrong with the time over which a drain closes idle connections, if anything: the drain
--- must not end before.
---@param opts moontide.ListenOptions
---@param site string where it is declared
---@return string|nil message
function M.wrong_spread(opts, site)
  local seconds = duration.parse(opts.idle_close_spread)
  local drain = config.get("shutdown.drain")
  if seconds == 0 or seconds < drain then return nil end
  return ("%s: tide.http.listen: idle_close_spread %s must be shorter than shutdown.drain, %s"
    ):format(site, duration.format(seconds), duration.format(drain))
end

---@param opts moontide.ListenOptions
---@param site string
---@return number seconds
function M.spread(opts, site)
  local wrong = M.wrong_spread(opts, site) -- of a listener that a startup phase declares
  if wrong then error(wrong, 0) end
  return duration.parse(opts.idle_close_spread)
end

--- Warns of inherited sockets that nobody takes: their clients would wait for ever.
---@param servers moontide.Server[]
function M.warn_of_unused(servers)
  local taken = {}
  for _, server in ipairs(servers) do taken[server.opts.fd or false] = true end
  for _, entry in ipairs(core.notify.listen_fds()) do
    if not taken[entry.name] then
      core.log.write(2, "http", ("no listener takes the inherited socket %q: tide.http.listen { fd "
        .. "= %q }"):format(entry.name, entry.name))
    end
  end
end

return M
