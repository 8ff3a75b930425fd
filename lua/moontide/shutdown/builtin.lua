--- The built-in tasks of the shutdown that belong to no other room: linger and terminate.

local core = require "moontide.core"
local duration = require "moontide.duration"
local task = require "moontide.task"

local M = {}

-- Lame duck: not ready any more, still serving, so that who routes to us can stop.
local function linger(seconds)
  return function()
    if core.state.was_ready() then task.sleep(seconds) end
  end
end

-- What of a scope has not ended, for the log.
local function names(scope)
  local list = {}
  for t in scope:tasks() do
    list[#list + 1] = ("%s (%s)"):format(t.name or "task", t:site())
    if #list == 10 then break end
  end
  return table.concat(list, ", ")
end

local function end_scope(scope, seconds, text)
  if scope:count() == 0 then return end
  scope:cancel(text)
  local joined = pcall(task.timeout, seconds, function() scope:join() end)
  if not joined and scope:count() > 0 then
    core.log.write(2, "lifecycle", ("%d tasks of scope %s did not end in %s"):format(scope:count(),
      scope.name, duration.format(seconds)), "tasks", names(scope))
  end
end

-- The end of all coroutines but the pipeline's own, then of what a person looks in through.
local function terminate(settings)
  return function(reason)
    local text = "the process shuts down: " .. tostring(reason)
    local background = package.loaded["moontide.background"]
    if background then background.scope:cancel(text) end
    if settings.terminate_host then end_scope(task.root, settings.terminate_drain, text) end
    local http = package.loaded["moontide.http"]
    if http then http.manage_close() end
  end
end

---@class moontide.BuiltinSettings
---@field linger number seconds
---@field terminate_drain number seconds
---@field terminate_host boolean
---@field auto_register boolean

--- Registers them; called when the pipeline is sealed.
---@param shutdown moontide.Shutdown
---@param settings moontide.BuiltinSettings
function M.register(shutdown, settings)
  local http = package.loaded["moontide.http"]
  local serves = http ~= nil and http.has_listener()
  if settings.auto_register and settings.linger > 0 and serves then
    shutdown:builtin_task("before-service-unbind", "linger", linger(settings.linger), {
      detail = function() return "lingering " .. duration.format(settings.linger) end,
    })
  end
  shutdown:builtin_task("actor-system-terminate", "terminate",
    terminate(settings))
end

return M
