--- The scheduler: runs what is ready, a slice at a time.
local alarm = require "moontide.task.alarm"
local cancel = require "moontide.task.cancel"
local core = require "moontide.core"
local ends = require "moontide.task.ends"
local errors = require "moontide.task.errors"
local queue = require "moontide.task.queue"
local scopes = require "moontide.task.scope"
local traceback = require "moontide.task.traceback"

-- xpcall is Lua's own here: our handler is known to return.
local resume, create = core.coroutine.resume, core.coroutine.create
local co_status, xpcall, yield = coroutine.status, core.coroutine.xpcall, coroutine.yield
local unpack = table.unpack
local clock_now = core.clock.now
local end_body, ready, defer_alarm = ends.end_body, queue.ready, queue.defer_alarm
local NEW, RAISE, RUNNING, FINISHED, DONE =
  queue.NEW, queue.RAISE, queue.RUNNING, queue.FINISHED, queue.DONE
local AWAIT, LEAVE, SLEEP, TURN = queue.AWAIT, queue.LEAVE, queue.SLEEP, queue.TURN

local M = {}

--- One pump turn lasts at most so long (seconds) or so many resumes, then the loop gets its turn.
local BUDGET, RESUMES = 0.001, 1024
--- The clock is read once in so many resumes.
local CLOCK_EVERY = 4
--- Coroutines kept for reuse.
local POOL = 16384

-- Bodies ---------------------------------------------------------------------------------------

--- Message handler at the base of each task: keeps the stack, also of the task that the error came
--- from. A cancelled task that ends by its cancellation needs none.
local function on_error(err)
  local t = queue.current
  if t.cancelled and errors.is_cancelled(err) then
    return err
  end
  local stack = traceback.here()
  local cause = t.cause
  if cause and rawequal(cause.error, err) and cause.stack then
    stack = ("%s\nraised in task %s, awaited by task %s:\n%s"):format(
      cause.stack, cause.name, t.name, stack)
  end
  t.stack = stack
  return err
end

local function finish(t, value, ...)
  t.at = FINISHED
  if select("#", ...) == 0 then
    t.value = value
  else
    t.value, t.many = table.pack(value, ...), true
  end
end

--- What a pooled coroutine runs, under the xpcall that is its main function: one task after the
--- other. A task that raises ends it, after its <close> variables were closed.
local function serve(t, fn, value)
  while true do
    local args = t.args
    if args == 0 then
      finish(t, fn())
    elseif args == 1 then
      finish(t, fn(value))
    else
      finish(t, fn(unpack(value, 1, args)))
    end
    t, fn, value = yield()
  end
end

local pool, pooled = {}, 0

-- Slices ---------------------------------------------------------------------------------------

--- Until when a cancelled task may run without being interrupted.
local function cleanup_deadline(t, now)
  local kill_at = alarm.kill_at(t)
  if kill_at then
    return kill_at > now + 0.1 and kill_at or now + 0.1
  end
  return now + alarm.grace
end

--- A slice ended neither in an await nor with its function's return. Either the function raised:
--- the xpcall has returned (false, err). Or the coroutine died of an interruption that none could
--- stop. Or the task leaves where it stands, which counts as its cancellation. Or it has yielded by
--- itself, which only coroutines that it made may do.
local function end_by_error(t, ok, mark, err)
  local co = t.body
  if not ok then
    err = mark
  elseif mark == LEAVE then
    t.cancelled = t.cancelled or errors.cancelled(err)
    err = t.cancelled
  elseif co_status(co) ~= "dead" then
    t.stack = traceback.prune(debug.traceback(co))
    err = "a task must not call coroutine.yield; to let others run, call tide.sleep(0)"
  end
  ends.close_body(t)
  t.failed, t.error, t.value = true, err, nil
  end_body(t)
end

--- Runs the first slice of a task, in a coroutine of the pool.
local function begin(t, fn, value)
  t.at = RUNNING
  queue.current = t
  if pooled > 0 then
    local co = pool[pooled]
    pool[pooled] = nil
    pooled = pooled - 1
    t.body = co
    return resume(co, t.deadline or 0, t, fn, value)
  end
  local co = create(xpcall)
  t.body = co
  return resume(co, t.deadline or 0, serve, on_error, t, fn, value)
end

--- What a slice ended with: an await, the end of the task's function, or neither.
local function after(t, ok, mark, source)
  queue.current = nil
  if mark == AWAIT then
    if source == TURN then
      return ready(t)
    end
    t.at = source
    if not t.alarm and (t.deadline or source == SLEEP or t.cancelled) then
      defer_alarm(t)
    end
  elseif t.at ~= FINISHED then
    end_by_error(t, ok, mark, source)
  else
    if pooled < POOL then
      pooled = pooled + 1
      pool[pooled] = t.body
    end
    end_body(t)
  end
end

--- Ends what a queued task has left to end. Returns true when there is nothing to run.
local function nothing_to_run(t, at)
  if at == NEW then
    t.cancelled = t.cancelled or t.scope.cancelled
    if t.cancelled then
      ends.drop(t)
      return true
    end
  elseif not t.body then
    if at ~= DONE then -- else it was ended while it was queued
      ends.settle(t, ends.outcome_of(t))
    end
    return true
  end
  return false
end

--- One slice of a queued task.
local function step(t, now)
  local deadline = t.deadline
  if deadline and deadline <= now and not t.cancelled then
    cancel.expire(t)
  end
  local at = t.at
  if at == NEW and not t.cancelled and not t.scope.cancelled then
    t.started_at = now
    return after(t, begin(t, t.body, t.value))
  elseif nothing_to_run(t, at) then
    return
  end
  t.at = RUNNING
  queue.current = t
  return after(t, resume(t.body, t.cancelled and cleanup_deadline(t, now) or deadline or 0,
    at == RAISE))
end

-- Callbacks ------------------------------------------------------------------------------------

--- The record of a task that ended unseen, to be used again.
local spare = false

--- Starts fn(value) from a callback of the loop and runs it at once. Most such handlers end without
--- awaiting; then nobody has seen a task, none is listed and its record serves again. Returns the
--- task when it lives on or did not end well. Called by a task, it only queues, as a spawn does.
---@param scope moontide.Scope
---@param opts moontide.TaskOptions without timeout and deadline
---@param fn fun(value: any): ...
---@return moontide.Task|nil
function M.run(scope, opts, fn, value)
  if queue.current or scope.cancelled then
    return scopes.start(scope, opts, fn, value)
  end
  local t = spare
  if t then
    spare, t.scope, t.deadline, t.opts = false, scope, scope.deadline, opts
  else
    t = scopes.unlisted(scope, opts)
  end
  local ok, mark, source = begin(t, fn, value)
  if t.at == FINISHED and not (t.own or t.seen or t.cancelled or t.many) then
    queue.current = nil
    if pooled < POOL then
      pooled = pooled + 1
      pool[pooled] = t.body
    end
    t.value, spare = nil, t
    return nil
  end
  scopes.list(scope, t)
  t.started_at = clock_now()
  after(t, ok, mark, source)
  return t
end

-- The pump -------------------------------------------------------------------------------------

local batch, batch_size, position = {}, 0, 0

--- Runs ready tasks for one budget. The loop calls it after anything that entered Lua.
---@return boolean more whether something is still ready
function M.pump()
  if queue.current then
    return false -- asked for by a task: it would be resumed inside another
  end
  local now = clock_now()
  queue.now = now
  local stop_at, left = now + BUDGET, RESUMES
  while true do
    if position >= batch_size then
      batch, batch_size = queue.take(batch)
      position = 0
      if batch_size == 0 then
        break
      end
    end
    position = position + 1
    local t = batch[position]
    batch[position] = false
    step(t, now)
    left = left - 1
    if left % CLOCK_EVERY == 0 then
      now = clock_now()
      queue.now = now
      if now >= stop_at or left <= 0 then
        break
      end
    end
  end
  alarm.arm_all()
  return position < batch_size or queue.length() > 0
end

---@return integer
function M.ready_count()
  return batch_size - position + queue.length()
end

return M
