--- What a pod should be told before it learns it the hard way, and where its last words go.
-- Loaded only in Kubernetes (or where a termination log exists).

local config = require "moontide.config"
local core = require "moontide.core"

local M = {}

local LOOPBACK = { ["127.0.0.1"] = true, ["localhost"] = true, ["::1"] = true }

--- One WARN for each setting that does not suit a pod.
function M.warn()
  if not config.get("shutdown.grace") then
    core.log.write(2, "lifecycle", "in Kubernetes without shutdown.grace: the shutdown total cannot "
      .. "be held against the pod's grace period; set shutdown.grace (and shutdown.prestop)")
  end
  local host = config.get("manage.host")
  if config.get("manage") ~= false and LOOPBACK[host] then
    core.log.write(2, "lifecycle", ("in Kubernetes with manage.host = %s: the kubelet's probes "
      .. "cannot reach it; set MOONTIDE_MANAGE__HOST=0.0.0.0"):format(host))
  end
end

--- Writes the last fatal reason where the kubelet looks for it, if that file exists.
---@param path string
---@param text string
function M.last_words(path, text)
  local file = io.open(path, "r+")
  if not file then return end
  file:write(text:sub(1, 4096), "\n")
  file:close()
end

return M
