--- `tide.profiles`: ready-made startup pipelines.

local fail = require("moontide.site").fail
local startup = require "moontide.startup"

local M = {}

-- The sixteen phases of a full service, in order; each does nothing until it has a task.
local SERVICE = {
  { "config", "exit" }, { "observability", "warn" }, { "secrets", "exit" },
  { "runtime-checks", "exit" }, { "features", "exit" }, { "boot-validation", "all" },
  { "db", "patient" }, { "schema-baseline", "exit" }, { "migrations", "exit" },
  { "redis", "patient" }, { "search", "warn" }, { "file-storage", "warn" },
  { "outbox", "thrice" }, { "jobs", "thrice" }, { "listener", "exit" }, { "ready", "exit" },
}

-- What each rule is as the `on_fail` of a phase.
local function rule(name)
  local retry = require "moontide.retry"
  if name == "patient" then
    -- 1, 2, 4, 8, 16, 30, 30 ... s; the startup total may end it before the five minutes do.
    return retry { base = 1, max = 30, factor = 2, jitter = 0, give_up_after = 300 }
  elseif name == "thrice" then
    return retry { base = 1, max = 30, factor = 2, jitter = 0, attempts = 4 }
  end
  return name
end

--- Declares the sixteen phases of a service. Call it before other startup phases.
---@param opts nil
function M.service(opts)
  if opts ~= nil and next(opts) ~= nil then
    fail "tide.profiles.service takes no options; set startup.phases.NAME in tide.config"
  end
  if startup.profile then fail "the service profile is declared already" end
  startup.profile = "service"
  for _, phase in ipairs(SERVICE) do
    local on_fail = rule(phase[2])
    if on_fail == "all" then
      startup:builtin_phase(phase[1], { on_fail = "exit" })
      startup.tasks[phase[1]].collect_all = true
    else
      startup:builtin_phase(phase[1], { on_fail = on_fail })
    end
  end
  startup:builtin_task("listener", "listen", function()
    local http = package.loaded["moontide.http"]
    if http then http.listen_all() end
  end)
end

return M
