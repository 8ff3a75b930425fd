--- The management listener: probes (answered in C), metrics, the state of the lifecycle.

local core = require "moontide.core"
local config = require "moontide.config"
local servers = require "moontide.http.server"

local admin = require "moontide.lazy" "moontide.http.admin"
local http = core.http
local M = {}

local function declare(server)
  server:get("/metrics", function(req) return admin.metrics(req) end)
  server:get("/lifecycle", function() return admin.lifecycle() end)
  local token = config.get("manage.token")
  if token and token ~= "" then
    server:post("/lifecycle/shutdown", function(req) return admin.shut_down(req, token) end)
  end
end

local function must(step, server)
  local ok, message = step(server.listener)
  if not ok then error(message .. "; manage.port and manage.host say where it goes", 0) end
end

--- Opens it; raises when its port is in use. One that a process we follow still answers on is left
--- to it until `listen`: probes would see us start.
function M.open()
  if M.server then return end
  local server = servers.new {
    name = "manage", host = config.get("manage.host"), port = config.get("manage.port"),
    manage = true, health = true,
  }
  local takeover = package.loaded["moontide.takeover"]
  local handed = takeover and takeover.adopt(server, true)
  declare(server)
  must(http.bind, server)
  M.server = server
  if not handed then M.listen() end
end

--- Answers from now on; again harmless. Says nothing: the start may still be refused.
function M.listen()
  local server = M.server
  if not server or server.listening then return end
  must(http.listen, server)
  server.listening = true
end

--- Says, once, where it answers.
function M.announce()
  local server = M.server
  if not server or not server.listening or server.announced then return end
  server.announced = true
  core.log.write(1, "http", "management listener", "address", (server:address()))
end

--- Closes it with its connections; the last act of a shutdown.
function M.close()
  if not M.server then return end
  http.shut(M.server.listener)
  M.server = nil
end

return M
