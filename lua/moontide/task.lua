--- Structured concurrency: the face of the task runtime.
---
--- Every task belongs to a scope and every scope ends after its tasks. The rules are numbered in
--- README.md of this folder; the parts are in task/. What most programs do not use in their first
--- milliseconds is loaded when it is first asked for.
local core = require "moontide.core"
local ends = require "moontide.task.ends"
local errors = require "moontide.task.errors"
local lazy = require "moontide.lazy"
require "moontide.task.handle"
local scopes = require "moontide.task.scope"

local cancel, late = lazy "moontide.task.cancel", lazy "moontide.task.late"
local mechanism = core.task
local current, spawn, start = mechanism.current, mechanism.spawn, mechanism.start

local M = {}

--- The scope of tasks that belong to nobody: it ends with the host.
M.root = scopes.new("root")
--- The scope of pipeline tasks, beside root, so that cancelling root leaves them alone.
M.pipeline = scopes.new("pipeline")

--- Runs ready tasks for one budget, and says whether something is still ready. The loop calls it
--- after anything that entered Lua.
M.pump = mechanism.pump
M.is_cancelled = errors.is_cancelled
--- Records of the tasks that were closed because they did not end in their grace: newest last.
---@type { name: string, site: string, seconds: number, traceback: string }[]
M.abandoned = {}

mechanism.policy("due", function(t, now) late.due(t, now) end)
mechanism.policy("expire", function(t) cancel.expire(t) end)

local LAZY = {
  all = "combine", race = "combine", timeout = "combine", scope = "combine", shield = "combine",
  offload = "offload",
}

local function current_scope()
  local t = current()
  if t then
    return scopes.of(t)
  end
  return M.root
end

--- Starts fn(...) as a task of the current scope: of the running task, or of root.
---@param fn fun(...): ...
---@return moontide.Task
function M.spawn(fn, ...)
  scopes.check_function(fn, 2)
  return spawn(current_scope(), fn, ...)
end

---@class moontide.TaskOptions
---@field name string|nil
---@field kind string|nil
---@field scope moontide.Scope|nil default: the current one
---@field children moontide.Scope|nil where its own spawns go; default: a scope of its own
---@field deadline number|nil absolute; the earlier of this and the inherited one holds
---@field timeout number|string|nil from now
---@field limit string|nil whose deadline it is, for messages
---@field site string|nil "file:line" of who asked for it
--- Called in scheduler context with the task, its options, its outcome and when it ended; must not
--- await.
---@field on_end fun(t: moontide.Task, opts: table, outcome: string, ended_at: number)|nil
---@field detached_errors boolean|nil the starter looks at the outcome itself

--- Starts a task with options.
---@param opts moontide.TaskOptions
---@param fn fun(...): ...
---@return moontide.Task
function M.start(opts, fn, ...)
  scopes.check_function(fn, 2)
  return start(opts.scope or current_scope(), opts, fn, ...)
end

--- A scope of tasks that no task owns. With a parent it has the parent's deadline, and is cancelled
--- with it.
---@param name string
---@param parent moontide.Scope|nil
---@return moontide.Scope
function M.new_scope(name, parent)
  local scope = scopes.new(name)
  if parent then
    scopes.put_below(scope, parent)
  end
  return scope
end

--- The running task, or nil.
---@return moontide.Task|nil
function M.current()
  local t = current()
  if t then
    t.seen = true -- its record is the caller's, too
  end
  return t
end

--- When the running task must have ended, on the clock's scale; nil when nothing says so.
---@return number|nil
function M.deadline()
  local t = current()
  if not t then
    return nil
  elseif not t.cancelled or not t:is_shielded() then
    return t.deadline or nil
  end
  local till, kill_at = t.shield.till, require("moontide.task.alarm").kill_at(t)
  return kill_at and kill_at < till and kill_at or till
end

--- Lets others run for at least d; 0 is one turn.
---@async
---@type fun(d: number|string)
M.sleep = mechanism.sleep

---@param what string|nil
---@return moontide.Waiter
function M.waiter(what)
  return require("moontide.task.waiter").new(what)
end

---@param name string|nil
---@return moontide.Event
function M.event(name)
  return require("moontide.task.event").new(name)
end

---@param capacity integer|nil
---@return moontide.Channel
function M.channel(capacity)
  return require("moontide.task.channel").new(capacity)
end

--- How many tasks there are.
---@return { ready: integer, waiting: integer, live: integer }
function M.counts()
  local ready, live, running = mechanism.counts()
  return { ready = ready, live = live, waiting = live - ready - running }
end

--- How many root tasks live.
---@return integer
function M.live_root()
  return M.root.n
end

--- Sets what happens to a failure that nobody awaited.
---@param fn fun(t: moontide.Task)
function M.on_uncaught(fn)
  ends.uncaught = fn
end

--- Lets no late task clean up beyond a time.
---@param at number|nil seconds on the clock's scale; nil: each has its full grace
function M.limit_grace(at)
  if at or package.loaded["moontide.task.alarm"] then
    require("moontide.task.alarm").grace_limit = at
  end
end

setmetatable(M, {
  __index = function(_, key)
    if key == "grace" then
      return require("moontide.task.alarm").grace
    end
    local room = LAZY[key]
    if room then
      local value = require("moontide.task." .. room)[key]
      rawset(M, key, value)
      return value
    end
  end,
  __newindex = function(_, key, value)
    if key == "grace" then
      require("moontide.task.alarm").grace = value
    else
      rawset(M, key, value)
    end
  end,
})

return M
