--- The built-in tasks of the shutdown that belong to no other room: linger and terminate.

local config = require "moontide.config"
local core = require "moontide.core"
local duration = require "moontide.duration"
local task = require "moontide.task"

local M = {}

-- Lame duck: not ready any more, still serving, so that who routes to us can stop.
local function linger(seconds)
  return function()
    if not core.state.was_ready() then return end
    require("moontide.http.draining").linger(package.loaded["moontide.http"].servers, seconds)
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
local function terminate(reason)
  local text = "the process shuts down: " .. tostring(reason)
  local background = package.loaded["moontide.background"]
  if background then background.scope:cancel(text) end
  local http = package.loaded["moontide.http"]
  if config.get "shutdown.terminate_host" then
    if http then
      http.break_off(require("moontide.shutdown").forced or "the shutdown did not wait for it")
    end
    end_scope(task.root, config.get "shutdown.terminate_drain", text)
  end
  if http then http.manage_close() end
end

-- With `shutdown.auto_register_tasks` off, what other rooms have wired goes, too.
local function withdraw_wired(shutdown)
  for _, name in ipairs(shutdown.names) do
    local tasks = shutdown.tasks[name]
    for entry in tasks:each() do
      if entry.builtin then tasks:remove(entry) end
    end
  end
end

--- Registers the linger, unless it is there already or not wanted: with the first application
--- listener, which a phase of the startup may declare.
---@param shutdown moontide.Shutdown
function M.register_linger(shutdown)
  local seconds = config.get "shutdown.linger"
  local tasks = shutdown.tasks["before-service-unbind"]
  if seconds == 0 or tasks.by_name.linger or not config.get "shutdown.auto_register_tasks" then
    return
  end
  shutdown:builtin_task("before-service-unbind", "linger", linger(seconds), {
    detail = function() return "lingering " .. duration.format(seconds) end,
  })
end

--- Registers them; called when the pipeline is sealed.
---@param shutdown moontide.Shutdown
function M.register(shutdown)
  local http = package.loaded["moontide.http"]
  if not config.get "shutdown.auto_register_tasks" then
    withdraw_wired(shutdown)
  elseif http and http.has_listener() then
    M.register_linger(shutdown)
  end
  if core.host.mode == "embedded" then require("moontide.embed").register(shutdown) end
  shutdown:builtin_task("actor-system-terminate", "terminate", terminate)
end

return M
