--- The host's own families: readiness checks and heartbeats.
local M = {}

local function declare_checks(metrics)
  local ok = metrics.gauge("moontide_check_ok", "1 while a readiness check is ok.", { "check" })
  metrics.on_collect(function()
    local readiness = package.loaded["moontide.readiness"]
    ok:clear()
    for name, check in next, readiness and readiness.all() or {} do
      if check.ok ~= nil then ok:set(check.ok and 1 or 0, { check = name }) end
    end
  end)
end

local function declare_heartbeats(metrics)
  local age = metrics.gauge("moontide_worker_heartbeat_age_seconds",
    "Time since a worker last made progress.", { "worker" })
  local stale = metrics.gauge("moontide_worker_stale", "1 while a worker is silent for too long.",
    { "worker" })
  metrics.on_collect(function()
    local heartbeat = package.loaded["moontide.heartbeat"]
    age:clear()
    stale:clear()
    for name, beat in next, heartbeat and heartbeat.all() or {} do
      age:set(beat:age(), { worker = name })
      stale:set(beat.stale and 1 or 0, { worker = name })
    end
  end)
end

---@param metrics table the registry
function M.declare(metrics)
  declare_checks(metrics)
  declare_heartbeats(metrics)
end

return M
