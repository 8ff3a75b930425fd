--- The Task: what spawn returns.
---
--- The core makes it and keeps what every slice reads (core/lua/task.h); here is what is made up
--- when somebody asks, and what tasks do for each other.
---
--- Where a task stands is `at`: "new", "ready", "raise" (queued, to go on with its cancellation),
--- "running", "finished" (its function has returned), "done"; or what it waits for: an object with
--- a `what`, a wait list, or its own scope.
local cancel = require "moontide.lazy" "moontide.task.cancel"
local errors = require "moontide.task.errors"
local mechanism = require("moontide.core").task
local traceback = require "moontide.lazy" "moontide.task.traceback"
local waitlist = require "moontide.task.waitlist"

---@class moontide.Task
---@field id integer
---@field name string
---@field kind string|nil "phase task", "handler", ...
---@field at any where it stands
---@field body thread|function|false its coroutine; before it has one its function
---@field state "ready"|"running"|"waiting"|"done"
---@field outcome "ok"|"failed"|"timed_out"|"cancelled"|"interrupted"|"abandoned"|nil
---@field error any what it failed with
---@field stack string|nil where it failed, or where it was when its deadline passed
---@field left string|nil of an abandoned task: where it was when it was closed
---@field started_at number|false
---@field ended_at number|false
---@field deadline number|false absolute, on the clock's scale
---@field waiting_on string|nil "sleep", "event NAME", "task NAME"
---@field scope moontide.Scope the scope it belongs to
---@field own moontide.Scope|false the scope that its own spawns join
local methods, getters = mechanism.Task.methods, mechanism.Task.getters

local last_id = 0

function getters.id(t)
  last_id = last_id + 1
  t.id = last_id
  return last_id
end

function getters.name(t)
  local opts = t.opts
  return opts and opts.name or "task " .. t.id
end

function getters.kind(t)
  local opts = t.opts
  return opts and opts.kind
end

function getters.state(t)
  local at = t.at
  if type(at) ~= "string" then
    return "waiting"
  elseif at == "done" then
    return "done"
  end
  return (at == "running" or at == "finished") and "running" or "ready"
end

function getters.waiting_on(t)
  local source = t.at
  if type(source) == "string" then
    return nil
  end
  local of = source.of or source
  if of.what then
    return of.what
  end
  return (of.scope and "task " or "the tasks of ") .. of.name
end

function mechanism.Task.meta.__tostring(t)
  return ("%s (%s)"):format(t.name, t.outcome or t.state)
end

--- Raises if waiting for `target` could never end: it is the running task, or one of those that
--- end only after it, or it waits for one of those itself.
local function refuse_self_wait(t, target)
  local x = target
  while x do
    local y = t
    while y do
      if x == y then
        error(errors.self_wait(x == t and target == t and "a task cannot await itself"
          or ("task %s cannot await task %s, which ends after it"):format(t.name, target.name)), 0)
      end
      y = y.scope.owner
    end
    local source = x.at
    local of = type(source) ~= "string" and source.of
    x = of and of.scope and of or nil
  end
end

local function wait_for_end(target)
  local t = mechanism.await_point()
  target.claimed = true
  if not target.outcome then
    refuse_self_wait(t, target)
    local joiners = target.joiners
    if not joiners then
      joiners = waitlist.new(target)
      target.joiners = joiners
    end
    joiners:wait(t)
  end
  return t
end

--- Waits until the task has ended; never raises for its failure.
---@async
---@return string outcome
function methods:join()
  wait_for_end(self)
  return self.outcome
end

--- Waits until the task has ended; returns its results or raises its failure.
---@async
---@return any ...
function methods:await()
  local t = wait_for_end(self)
  return self:results(t)
end

--- The results of an ended task; raises its failure in the task `t`, whose traceback will show
--- this one's too.
---@param t moontide.Task|nil
function methods:results(t)
  if self.outcome ~= "ok" then
    if t then
      t.cause = self
    end
    error(self.error, 0)
  end
  local value = self.value
  if self.many then
    return table.unpack(value, 1, value.n)
  end
  return value
end

--- Asks the task, and all below it, to end: its present and each later await raises.
---@param reason string|nil
---@return boolean asked false when it had ended or was cancelled already
function methods:cancel(reason)
  return cancel.cancel(self, errors.cancelled(reason, cancel.canceller()))
end

--- Where it was spawned ("file:line") when the spawner said so, else where its function is defined.
--- Nothing is noted at the spawn: the function is found when somebody asks, while the task lives.
---@return string
function methods:site()
  local opts, fn = self.opts, self.fn
  if opts and opts.site then
    return opts.site
  end
  local info = type(fn) == "function" and debug.getinfo(fn, "S")
  return info and info.short_src .. ":" .. info.linedefined or "?"
end

--- Where the task is now, through the tasks that it awaits; of an ended task, where it failed.
---@return string
function methods:traceback()
  if self.outcome then
    return self.stack or ""
  end
  return traceback.of(self)
end

--- Whether a shield holds its cancellation off right now.
---@return boolean
function methods:is_shielded()
  return cancel.holds(self.shield)
end
