--- The phases moontide brings along, as data. Pure.
---
--- `names` is `tide.phases`: the names of the shutdown phases as constants, so
--- that a slip of the keyboard is an error where it is made.
local suggest = require("moontide.lazy")("moontide.suggest")

local M = {}

--- The shutdown pipeline, in its order; timeouts in seconds.
M.shutdown = {
  { name = "before-service-unbind", opts = { timeout = 5 } },
  { name = "service-unbind", opts = { timeout = 5 } },
  { name = "service-requests-done", opts = { timeout = 30 } },
  { name = "service-stop", opts = { timeout = 5 } },
  { name = "before-cluster-shutdown", opts = { timeout = 5 } },
  { name = "cluster-sharding-shutdown-region", opts = { timeout = 10 } },
  { name = "cluster-leave", opts = { timeout = 5 } },
  { name = "cluster-exiting", opts = { timeout = 10 } },
  { name = "cluster-exiting-done", opts = { timeout = 5 } },
  { name = "cluster-shutdown", opts = { timeout = 5 } },
  { name = "before-actor-system-terminate", opts = { timeout = 5 } },
  { name = "actor-system-terminate", opts = { timeout = 10, always = true } },
}

--- Pinned last in the shutdown pipeline.
M.terminal = "actor-system-terminate"

--- Where the hooks without a phase run: inserted as a phase of a script's would be.
--- Its time is what the total leaves.
M.hooks = {
  name = "shutdown-hooks",
  opts = { after = "before-actor-system-terminate", timeout = "none", mode = "lifo" },
}

-- ServiceUnbind = "service-unbind", ..., and those names in order.
local constants, known

local function name_all()
  constants, known = {}, {}
  for i, phase in ipairs(M.shutdown) do
    known[i] = ("-" .. phase.name):gsub("%-(%a)", string.upper)
    constants[known[i]] = phase.name
  end
end

--- ServiceUnbind = "service-unbind", ...; reading or writing another name raises.
---@type table<string, string>
M.names = setmetatable({}, {
  __index = function(_, key)
    if not constants then name_all() end
    local name = constants[key]
    if not name then error("tide.phases: " .. suggest.unknown("phase", key, known), 2) end
    return name
  end,
  __newindex = function() error("tide.phases cannot be changed", 2) end,
  __pairs = function()
    if not constants then name_all() end
    return next, constants
  end,
})

return M
