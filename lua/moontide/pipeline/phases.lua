--- The phases moontide brings along, as data. Pure.
---
--- `names` is `tide.phases`: the names of the shutdown phases as constants, so
--- that a slip of the keyboard is an error where it is made.
local retry = require("moontide.retry")
local suggest = require("moontide.suggest")

local M = {}

--- The shutdown pipeline, in its order; timeouts in seconds.
M.shutdown = {
  { name = "before-service-unbind", timeout = 5 },
  { name = "service-unbind", timeout = 5 },
  { name = "service-requests-done", timeout = 30 },
  { name = "service-stop", timeout = 5 },
  { name = "before-cluster-shutdown", timeout = 5 },
  { name = "cluster-sharding-shutdown-region", timeout = 10 },
  { name = "cluster-leave", timeout = 5 },
  { name = "cluster-exiting", timeout = 10 },
  { name = "cluster-exiting-done", timeout = 5 },
  { name = "cluster-shutdown", timeout = 5 },
  { name = "before-actor-system-terminate", timeout = 5 },
  { name = "actor-system-terminate", timeout = 10, always = true },
}

--- Pinned last in the shutdown pipeline.
M.terminal = "actor-system-terminate"

--- Where the hooks without a phase run; made with the first of them. Its time is
--- what the total leaves.
M.hooks = {
  name = "shutdown-hooks", after = "before-actor-system-terminate",
  timeout = "none", mode = "lifo",
}

--- The startup phases of a full service and how each of them fails. `migrations`
--- goes by its mode, which its task decides.
M.service = {
  { name = "config", on_fail = "exit" },
  { name = "observability", on_fail = "warn" },
  { name = "secrets", on_fail = "exit" },
  { name = "runtime-checks", on_fail = "exit" },
  { name = "features", on_fail = "exit" },
  { name = "boot-validation", on_fail = "exit" },
  { name = "db", on_fail = "retry" },
  { name = "schema-baseline", on_fail = "exit" },
  { name = "migrations", on_fail = "exit" },
  { name = "redis", on_fail = "retry" },
  { name = "search", on_fail = "warn" },
  { name = "file-storage", on_fail = "warn" },
  { name = "outbox", on_fail = "retry-3" },
  { name = "jobs", on_fail = "retry-3" },
  { name = "listener", on_fail = "exit" },
  { name = "ready", on_fail = "exit" },
}

--- The retry rules that `service` names: 1, 2, 4, 8, 16, 30, 30 ... seconds for
--- five minutes; three retries after the first try.
M.retries = {
  ["retry"] = retry.new({ base = 1, max = 30, give_up_after = 300 }),
  ["retry-3"] = retry.new({ base = 1, max = 30, attempts = 4 }),
}

local function constant(name)
  return (("-" .. name):gsub("%-(%a)", string.upper))
end

local constants, known = {}, {}
for i, phase in ipairs(M.shutdown) do
  known[i] = constant(phase.name)
  constants[known[i]] = phase.name
end

--- ServiceUnbind = "service-unbind", ...; reading or writing another name raises.
---@type table<string, string>
M.names = setmetatable({}, {
  __index = function(_, key)
    local name = constants[key]
    if not name then error("tide.phases: " .. suggest.unknown("phase", key, known), 2) end
    return name
  end,
  __newindex = function() error("tide.phases cannot be changed", 2) end,
  __pairs = function() return next, constants end,
})

return M
