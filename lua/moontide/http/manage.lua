--- The management listener: probes (answered in C), metrics, the state of the lifecycle.

local core = require "moontide.core"
local config = require "moontide.config"
local servers = require "moontide.http.server"

local http = core.http
local M = {}

local function metrics(req)
  local text, kind = require("moontide.observe.metrics").collect(req.headers.accept)
  return 200, text, { ["Content-Type"] = kind }
end

local function lifecycle()
  local shutdown = require "moontide.shutdown"
  local _, status = core.health.ready()
  return {
    state = core.state.get(), status = status, reason = shutdown.reason
      and tostring(shutdown.reason) or nil,
    in_flight = http.stats().in_flight,
  }
end

-- Compares in a time that does not depend on where the two differ.
local function same(a, b)
  if #a ~= #b then return false end
  local difference = 0
  for i = 1, #a do difference = difference | (a:byte(i) ~ b:byte(i)) end
  return difference == 0
end

local function shut_down(token)
  return function(req)
    local given = (req.headers.authorization or ""):match("^[Bb]earer%s+(.+)$")
    if not (given and same(given, token)) then
      return 401, "a bearer token is needed\n", { ["WWW-Authenticate"] = "Bearer" }
    end
    local reason = require("moontide.reason").new("admin", { text = req.remote })
    require("moontide.shutdown"):run(reason)
    return 202, { state = core.state.get() }
  end
end

local function declare(server)
  server:get("/metrics", metrics)
  server:get("/lifecycle", lifecycle)
  local token = config.get("manage.token")
  if token and token ~= "" then server:post("/lifecycle/shutdown", shut_down(token)) end
end

--- Opens it; raises when its port is in use.
function M.open()
  if M.server then return end
  local server = servers.new {
    name = "manage", host = config.get("manage.host"), port = config.get("manage.port"),
    manage = true, health = true,
  }
  declare(server)
  for _, step in ipairs { http.bind, http.listen } do
    local ok, message = step(server.listener)
    if not ok then error(message .. "; manage.port and manage.host say where it goes", 0) end
  end
  M.server = server
  core.log.write(1, "http", "management listener", "address", (server:address()))
end

--- Closes it with its connections; the last act of a shutdown.
function M.close()
  if not M.server then return end
  http.shut(M.server.listener)
  M.server = nil
end

return M
