--- Cancellation: marking a task and all below it, and raising at await points.
---
--- A cancellation is a level, not an edge: once set it stays, and each await outside a shield
--- raises it. It reaches the whole tree below a task at once, but not what a shield protects.
local alarm = require "moontide.task.alarm"
local core = require "moontide.core"
local errors = require "moontide.task.errors"
local mechanism = require("moontide.core").task
local traceback = require "moontide.task.traceback"

local M = {}

--- Who cancels: the running task by its name; nil: none runs.
---@return string|nil
function M.canceller()
  local t = mechanism.current()
  return t and tostring(t.name)
end

--- Whether a shield holds the cancellation off.
---@param shield moontide.Shield|nil
---@return boolean
function M.holds(shield)
  return shield ~= nil and core.clock.now() + alarm.slack < shield.till
end

--- Wakes a waiting task with its cancellation. Not while a shield is over it; and not one that
--- waits for tasks below it, which are cancelled with it.
---@param t moontide.Task
local function deliver(t)
  local source = t.at
  if type(source) == "string" then
    return
  elseif not t.body then
    t.told = true
    return
  elseif M.holds(t.shield) then
    mechanism.arm(t)
    return
  elseif source.firm then
    return
  end
  mechanism.raise(t)
  if source.forget then
    source:forget()
  end
end
M.deliver = deliver

--- Cancels the scopes that a task has open, as far as no shield is over them.
---@param t moontide.Task
---@param err moontide.TaskError
function M.cancel_below(t, err)
  local scope = t.own
  while scope do
    if not M.holds(scope.shield) then
      M.cancel_scope(scope, err)
    end
    scope = scope.outer
  end
end

--- Cancels a task and all below it.
---@param t moontide.Task
---@param err moontide.TaskError
---@return boolean whether it was the first cancellation of a live task
function M.cancel(t, err)
  if t.outcome or t.cancelled then
    return false
  end
  t.cancelled = err
  if err.kind == "timeout" then
    t.grace_end = core.clock.now() + alarm.grace
  end
  M.cancel_below(t, err)
  deliver(t)
  return true
end

--- Cancels all tasks of a scope and of those below it, and those they will still get.
---@param scope moontide.Scope
---@param err moontide.TaskError
function M.cancel_scope(scope, err)
  scope.cancelled = scope.cancelled or err
  for _, t in ipairs(mechanism.members(scope)) do
    M.cancel(t, err)
  end
  for below in pairs(scope.below or {}) do
    M.cancel_scope(below, err)
  end
end

--- The task's deadline has passed.
---@param t moontide.Task
function M.expire(t)
  if type(t.at) ~= "string" then
    t.stack = traceback.of(t)
  end
  local opts = t.opts
  local limit = opts and opts.limit or t.scope.limit or "its own timeout"
  local since = t.started_at or t.deadline
  M.cancel(t, errors.timeout(limit, t.allowed or t.deadline - since))
end

return M
