--- The Scope: who owns tasks, and where tasks come from.
local cancel = require "moontide.task.cancel"
local errors = require "moontide.task.errors"
local queue = require "moontide.task.queue"
local waitlist = require "moontide.task.waitlist"
local Task = require "moontide.task.handle"

---@class moontide.Scope
---@field name string
---@field members moontide.Task[] live tasks, in no order
---@field n integer how many
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
local Scope = { __name = "moontide.Scope" }
Scope.__index = Scope

local M = {}

local select, setmetatable, type = select, setmetatable, type
local append, ready, NEW = queue.append, queue.ready, queue.NEW

---@param name string
---@param owner moontide.Task|nil
---@return moontide.Scope
function M.new(name, owner)
  return setmetatable({
    name = name, members = {}, n = 0, owner = owner,
    deadline = owner and owner.deadline or false,
    limit = owner and owner.opts and owner.opts.limit or owner and owner.scope.limit or nil,
  }, Scope)
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
  local opts = t.opts
  if t.own then
    return t.own
  elseif opts and opts.children then
    return opts.children
  end
  local scope = M.new(t.name, t)
  if t.cancelled then
    scope.cancelled = t.cancelled
  end
  t.own = scope
  return scope
end

--- Makes a task. This is the hot path: one table, no closure, no clock entry.
local function spawn(scope, opts, fn, first, ...)
  local n = scope.n + 1
  local t = setmetatable({
    at = NEW, scope = scope, slot = n, body = fn, value = first, deadline = scope.deadline,
    opts = opts, args = 0, alarm = false, cancelled = false, own = false, joiners = false,
    failed = false, started_at = false, ended_at = false, outcome = nil,
  }, Task)
  scope.n = n
  scope.members[n] = t
  queue.live = queue.live + 1
  local more = select("#", ...)
  if more > 0 then
    t.args, t.value = more + 1, { first, ... }
  elseif first ~= nil then
    t.args = 1
  end
  append(t)
  return t
end
M.spawn = spawn

--- A task that no scope lists yet; see scheduler.run.
function M.unlisted(scope, opts)
  return setmetatable({
    at = NEW, scope = scope, slot = 0, body = false, value = nil, deadline = scope.deadline,
    opts = opts, args = 1, alarm = false, cancelled = false, own = false, joiners = false,
    failed = false, started_at = false, ended_at = false, outcome = nil,
    seen = false, many = false,
  }, Task)
end

--- Lists a task of `unlisted`: from here on it is one like any other.
function M.list(scope, t)
  local n = scope.n + 1
  t.slot, scope.n = n, n
  scope.members[n] = t
  queue.live = queue.live + 1
end

local function check_function(fn, level)
  if type(fn) ~= "function" then
    local meta = getmetatable(fn)
    if not (meta and meta.__call) then
      error(("a task needs a function, got %s"):format(type(fn)), level + 1)
    end
  end
end
M.check_function = check_function

local function duration(value, what, level)
  if type(value) == "number" and value >= 0 and value < math.huge then
    return value
  end
  return require("moontide.duration").check(value, what, level + 1)
end
M.duration = duration

--- Makes a task with options; see task.start.
function M.start(scope, opts, fn, ...)
  local deadline, allowed = opts.deadline, nil
  if opts.timeout then
    allowed = duration(opts.timeout, "timeout", 3)
    local at = require("moontide.core").clock.now() + allowed
    if not deadline or at < deadline then
      deadline = at
    else
      allowed = nil
    end
  end
  local t = spawn(scope, opts, fn, ...)
  if deadline and (not t.deadline or deadline < t.deadline) then
    t.deadline = deadline
    t.allowed = allowed
  end
  return t
end

--- Takes an ended task out.
---@param scope moontide.Scope
---@param t moontide.Task
function M.remove(scope, t)
  local members, n, slot = scope.members, scope.n, t.slot
  local moved = members[n]
  members[slot] = moved
  moved.slot = slot
  members[n] = nil
  scope.n = n - 1
  if n == 1 then
    local owner = scope.owner
    if owner and owner.at == scope then
      ready(owner) -- its function has returned; it ends now
    end
    if scope.joiners then
      scope.joiners:wake_all()
    end
  end
end

--- Starts a task in this scope.
---@param fn fun(...): ...
---@return moontide.Task
function Scope:spawn(fn, ...)
  check_function(fn, 2)
  return spawn(self, false, fn, ...)
end

--- Starts a task in this scope, with the options of task.start.
---@param opts table
---@param fn fun(...): ...
---@return moontide.Task
function Scope:start(opts, fn, ...)
  check_function(fn, 2)
  return M.start(self, opts, fn, ...)
end

--- Cancels all its tasks, and those that it will still get.
---@param reason string|nil
function Scope:cancel(reason)
  cancel.cancel_scope(self, errors.cancelled(reason))
end

--- Waits until no task of it lives.
---@async
function Scope:join()
  M.join(self, queue.await_point(), false)
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
  local list = table.move(self.members, 1, self.n, 1, {})
  local i = 0
  return function()
    i = i + 1
    return list[i]
  end
end

function Scope:__tostring()
  return ("scope %s (%d tasks)"):format(self.name, self.n)
end

return M
