--- The public face: `local tide = require "moontide"`.
--
-- What every script needs is here at once; the rest is loaded when it is first named.

local core = require "moontide.core"
local task = require "moontide.task"

---@class moontide
---@field version string
---@field startup moontide.Startup the pipeline that the process rises by
---@field shutdown moontide.Shutdown the pipeline that it ebbs by
---@field phases table<string, string> names of the built-in shutdown phases
---@field profiles { service: fun() }
---@field root moontide.Scope tasks that belong to nobody
---@field now fun(): number seconds, monotonic
---@field state fun(): "starting"|"ready"|"draining"|"stopped"
---@field on_state fun(fn: fun(from: string, to: string, reason: any)): fun()
---@field config fun(settings: table)
---@field component fun(name: string, opts: moontide.ComponentOptions): moontide.Component
---@field check fun(name: string, opts: table|function, fn: function|nil): moontide.Check
---@field heartbeat fun(name: string, opts: table|nil): moontide.Heartbeat
---@field worker fun(name: string, opts: table|function, fn: function|nil): moontide.Worker
---@field retry fun(options: table|nil): tide.RetryPolicy
---@field permanent fun(err: any): tide.PermanentError
---@field reason table kinds of reasons: `new`, `extend`, `parse`
---@field log moontide.Logger of component "app"
---@field http table
---@field json table
---@field metrics table
---@field task table the whole task library
---@field on_signal fun(name: string, fn: fun(name: string)|nil): true|nil, string|nil
---@field run_until_terminated fun(opts: { signals: string[] }|nil): integer|nil
---@field install_process_hooks fun(names: string[]|nil)
---@field remove_process_hooks fun()
---@field handles fun(): table[] the open luv handles, with the line that made each
local tide = {
  version = core.host.version,
  startup = require "moontide.startup",
  shutdown = require "moontide.shutdown",
  root = task.root,
  now = core.clock.now,
  state = core.state.get,
  spawn = task.spawn, sleep = task.sleep, event = task.event, channel = task.channel,
}

-- Names that are a module of their own, and functions of one.
local MODULES = {
  http = "moontide.http", json = "moontide.json", reason = "moontide.reason",
  task = "moontide.task", log = "moontide.observe.log", metrics = "moontide.observe.metrics",
  profiles = "moontide.profiles", retry = "moontide.retry",
}
local FUNCTIONS = {
  timeout = { "moontide.task", "timeout" },
  all = { "moontide.task", "all" },
  race = { "moontide.task", "race" },
  scope = { "moontide.task", "scope" },
  shield = { "moontide.task", "shield" },
  offload = { "moontide.task", "offload" },
  component = { "moontide.component", "new" },
  check = { "moontide.readiness", "check" },
  heartbeat = { "moontide.heartbeat", "new" },
  worker = { "moontide.worker", "new" },
  permanent = { "moontide.retry", "permanent" },
  config = { "moontide.boot", "configure" },
  handles = { "moontide.uv", "handles" },
  on_state = { "moontide.states", "on_state" },
  on_signal = { "moontide.signals", "on_signal" },
  install_process_hooks = { "moontide.signals", "install_process_hooks" },
  remove_process_hooks = { "moontide.signals", "remove_process_hooks" },
  run_until_terminated = { "moontide.until_terminated", "run" },
}

--- Shuts down with reason actor-system-terminate; with `shutdown.run_by_terminate` off, ends
--- without the pipeline.
---@return moontide.Completion|nil
function tide.terminate()
  if require("moontide.config").get("shutdown.run_by_terminate") then
    return tide.shutdown:run("actor-system-terminate")
  end
  require("moontide.exit").stop_at_once(require("moontide.reason").new("actor-system-terminate"))
end

local function load_name(name)
  local module = MODULES[name]
  if module then return require(module) end
  local at = FUNCTIONS[name]
  if at then return require(at[1])[at[2]] end
  if name == "phases" then return require("moontide.pipeline.phases").names end
end

return setmetatable(tide, {
  __index = function(self, name)
    local value = load_name(name)
    if value == nil then return nil end
    rawset(self, name, value)
    return value
  end,
})
