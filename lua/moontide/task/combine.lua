--- Tasks together: scope, all, race, timeout, shield.
---
--- Each of them opens a scope of the running task and leaves only when that is empty, so nothing
--- it started runs on behind it.
local cancel = require "moontide.task.cancel"
local core = require "moontide.core"
local ends = require "moontide.task.ends"
local errors = require "moontide.task.errors"
local scopes = require "moontide.task.scope"

local M = {}

--- Waits until the scope is empty, whatever happens, and closes it.
local function leave(scope, t)
  scopes.join(scope, t, true)
  scopes.close(scope)
  if scope.unclaimed then
    ends.report_unclaimed(scope)
  end
end

--- Raises in t what ended it while it was in a scope: its own cancellation, or the first failure.
local function raise_failure(scope, t)
  if t.cancelled and not t:is_shielded() then
    t.told = true
    error(t.cancelled, 0)
  elseif scope.failure then
    scope.failure:results(t)
  end
end

local function open(name, strict)
  local t = core.task.await_point()
  local scope = scopes.open(t, name)
  scope.strict = strict
  return scope, t
end

--- Runs fn(scope) as a task of a new scope and leaves when all tasks of the scope have ended. The
--- first that fails cancels the rest, and its error is raised here.
---@async
---@param fn fun(scope: moontide.Scope): ...
---@return any ... what fn returned
function M.scope(fn)
  scopes.check_function(fn, 2)
  local scope, t = open("tide.scope", true)
  local body = core.task.start(scope, { name = "tide.scope", children = scope }, fn, scope)
  leave(scope, t)
  raise_failure(scope, t)
  return body:results(t)
end

--- Runs all functions at once. The first failure cancels the rest and is raised here.
---@async
---@param functions table<any, fun(): any>
---@return table results the first result of each, under its key
function M.all(functions)
  for _, fn in pairs(functions) do
    scopes.check_function(fn, 2)
  end
  local scope, t = open("tide.all", true)
  local tasks, results = {}, {}
  for key, fn in pairs(functions) do
    tasks[key] = core.task.spawn(scope, fn)
  end
  leave(scope, t)
  raise_failure(scope, t)
  for key, task in pairs(tasks) do
    results[key] = (task:results(t))
  end
  return results
end

--- Runs all functions at once until the first has ended; the others are cancelled.
---@async
---@param functions table<any, fun(): ...>
---@return any ... what the first returned; its failure is raised
function M.race(functions)
  local scope, t = open("tide.race", false)
  local winner
  local function on_end(task)
    if not winner then
      winner = task
      cancel.cancel_scope(scope, errors.cancelled("lost a race"))
    end
  end
  for _, fn in pairs(functions) do
    scopes.check_function(fn, 2)
    core.task.start(scope, { name = "tide.race", on_end = on_end, detached_errors = true }, fn)
  end
  leave(scope, t)
  raise_failure(scope, t)
  if not winner then
    error("race: needs at least one function", 2)
  end
  return winner:results(t)
end

--- Runs fn(...) with a deadline; raises { kind = "timeout" } when it passes.
---@async
---@param d number|string
---@param fn fun(...): ...
---@return any ...
function M.timeout(d, fn, ...)
  scopes.check_function(fn, 2)
  local seconds = scopes.duration(d, "timeout", 2)
  local scope, t = open("tide.timeout", false)
  local task = core.task.start(scope, {
    name = "tide.timeout", timeout = seconds, limit = "tide.timeout", detached_errors = true,
  }, fn, ...)
  leave(scope, t)
  raise_failure(scope, t)
  return task:results(t)
end

---@class moontide.Shield
---@field till number when it ceases to protect

local Guard = {}

--- Its tasks end under the shield still, unless its function failed. A task that is being closed
--- cannot wait; those below it have been closed before.
function Guard:__close()
  local t, scope = self.t, self.scope
  if scope.n > 0 and coroutine.isyieldable() then
    if self.failed then
      cancel.cancel_scope(scope, t.cancelled or errors.cancelled("its shield ended by an error"))
    end
    scopes.join(scope, t, true)
  end
  t.shield = self.outer
  scopes.close(scope)
  if scope.unclaimed then
    ends.report_unclaimed(scope)
  end
end

--- Runs fn(...) with the cancellation of the running task held off for at most d. For cleanup that
--- must await. A late task is closed at the end of its grace all the same.
---@async
---@param d number|string
---@param fn fun(...): ...
---@return any ...
function M.shield(d, fn, ...)
  scopes.check_function(fn, 2)
  local t = core.task.current()
  if not t then
    error("cannot shield outside a task", 2)
  end
  local till = core.clock.now() + scopes.duration(d, "shield", 2)
  local shield = { till = till }
  local scope = scopes.open(t, "tide.shield")
  scope.shield, scope.deadline, scope.limit = shield, till, "tide.shield"
  local guard <close> = setmetatable({
    t = t, scope = scope, outer = t.shield, failed = true,
  }, Guard)
  t.shield = shield
  return (function(...)
    guard.failed = false
    return ...
  end)(fn(...))
end

return M
