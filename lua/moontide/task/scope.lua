--- The Scope: who owns tasks.
---
--- A scope is made by the core, which counts and links its tasks; what stands here is opened less
--- often than a task is spawned.
local cancel = require "moontide.lazy" "moontide.task.cancel"
local errors = require "moontide.task.errors"
local mechanism = require("moontide.core").task
local waitlist = require "moontide.task.waitlist"

---@class moontide.Scope
---@field name string
---@field n integer how many live tasks it has
---@field owner moontide.Task|nil the task that ends only after the scope
---@field outer moontide.Scope|nil the owner's scope before this one was opened
---@field deadline number|false what its tasks inherit
---@field limit string|nil whose deadline that is
---@field cancelled moontide.TaskError|nil
---@field strict boolean|nil the first failure cancels the rest
---@field failure moontide.Task|nil of a strict scope: who failed first
---@field shield moontide.Shield|nil
---@field below table<moontide.Scope, true>|nil scopes that are cancelled with it
---@field unclaimed moontide.Task[]|nil failed tasks that nobody has awaited yet
local Scope = mechanism.Scope.methods

local M = {}

local members = mechanism.members

---@param name string
---@param owner moontide.Task|nil
---@return moontide.Scope
function M.new(name, owner)
  local opts = owner and owner.opts
  return mechanism.new_scope({
    name = name, limit = opts and opts.limit or owner and owner.scope.limit or nil,
  }, owner)
end

local weak = { __mode = "k" }

--- Lets a scope be cancelled with another, and share its deadline.
---@param scope moontide.Scope
---@param parent moontide.Scope
function M.put_below(scope, parent)
  parent.below = parent.below or setmetatable({}, weak)
  parent.below[scope] = true
  scope.deadline, scope.limit, scope.cancelled = parent.deadline, parent.limit, parent.cancelled
end

--- Opens a scope of the running task: its spawns join it until close.
---@param t moontide.Task
---@param name string
---@return moontide.Scope
function M.open(t, name)
  local scope = M.new(name, t)
  scope.outer = t.own or nil
  t.own = scope
  return scope
end

---@param scope moontide.Scope
function M.close(scope)
  scope.owner.own = scope.outer or false
end

--- The scope that the running task's spawns join.
---@param t moontide.Task
---@return moontide.Scope
function M.of(t)
  local opts, own = t.opts, t.own
  if own then
    return own
  elseif opts and opts.children then
    return opts.children
  end
  own = M.new(t.name, t)
  if t.cancelled then
    own.cancelled = t.cancelled
  end
  t.own = own
  return own
end

function M.check_function(fn, level)
  if type(fn) ~= "function" then
    local meta = getmetatable(fn)
    if not (meta and meta.__call) then
      error(("a task needs a function, got %s"):format(type(fn)), level + 1)
    end
  end
end

function M.duration(value, what, level)
  if type(value) == "number" and value >= 0 and value < math.huge then
    return value
  end
  return require("moontide.duration").check(value, what, level + 1)
end
mechanism.policy("duration", M.duration)

--- Starts a task in this scope.
---@type fun(self: moontide.Scope, fn: (fun(...): ...), ...): moontide.Task
Scope.spawn = mechanism.spawn

--- Starts a task in this scope, with the options of task.start.
---@type fun(self: moontide.Scope, opts: table, fn: (fun(...): ...), ...): moontide.Task
Scope.start = mechanism.start

--- Cancels all its tasks, and those that it will still get.
---@param reason string|nil
function Scope:cancel(reason)
  cancel.cancel_scope(self, errors.cancelled(reason, cancel.canceller()))
end

--- Waits until no task of it lives.
---@async
function Scope:join()
  M.join(self, mechanism.await_point(), false)
end

--- Waits for the scope's end in task t; a firm wait is not ended by a cancellation, because the
--- scope's tasks are cancelled with t.
function M.join(scope, t, firm)
  if scope.n == 0 then
    return
  end
  local x = t
  while x do
    if x.scope == scope then
      error(errors.self_wait(("task %s cannot await the scope %s, which ends after it"):format(
        t.name, scope.name)), 0)
    end
    x = x.scope.owner
  end
  local joiners = scope.joiners
  if not joiners then
    joiners = waitlist.new(scope)
    scope.joiners = joiners
  end
  joiners.firm = firm
  joiners:wait(t)
end

--- How many of its tasks live.
---@return integer
function Scope:count()
  return self.n
end

--- Its live tasks as they are at the call, in no particular order.
---@return fun(): moontide.Task|nil
function Scope:tasks()
  local list = members(self)
  local i = 0
  return function()
    i = i + 1
    return list[i]
  end
end

function mechanism.Scope.meta:__tostring()
  return ("scope %s (%d tasks)"):format(self.name, self.n)
end

return M
