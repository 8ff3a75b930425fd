--- The scheduler: runs what is ready, and ends what has run.
local alarm = require "moontide.task.alarm"
local cancel = require "moontide.task.cancel"
local core = require "moontide.core"
local errors = require "moontide.task.errors"
local queue = require "moontide.task.queue"
local scopes = require "moontide.task.scope"
local traceback = require "moontide.task.traceback"

-- xpcall is Lua's own here: our handler is known to return.
local resume, create, close = core.coroutine.resume, core.coroutine.create, core.coroutine.close
local co_status, xpcall, yield = coroutine.status, core.coroutine.xpcall, coroutine.yield
local unpack = table.unpack
local clock_now = core.clock.now
local INTERRUPTED = core.coroutine.interrupted
local ready, defer_alarm, remove = queue.ready, queue.defer_alarm, scopes.remove
local NEW, RAISE, RUNNING, FINISHED, DONE =
  queue.NEW, queue.RAISE, queue.RUNNING, queue.FINISHED, queue.DONE
local AWAIT, LEAVE, SLEEP, TURN = queue.AWAIT, queue.LEAVE, queue.SLEEP, queue.TURN

local M = {
  --- Records of the tasks that were closed because they did not end in their grace: newest last.
  ---@type { name: string, site: string, seconds: number, traceback: string }[]
  abandoned = {},
}

--- One pump turn lasts at most so long (seconds) or so many resumes, then the loop gets its turn.
local BUDGET, RESUMES = 0.001, 1024
--- The clock is read once in so many resumes.
local CLOCK_EVERY = 4
--- Coroutines kept for reuse, and abandoned tasks remembered.
local POOL, REMEMBERED = 16384, 64

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

-- Ends -----------------------------------------------------------------------------------------

local function complain(what, t, err, stack)
  core.log.write(3, "task", what, "task", t.name, "error", tostring(err), "traceback", stack or "")
end

--- Who hears of failures that nobody awaited; the host's policy puts itself here.
---@param t moontide.Task
function M.uncaught(t)
  complain("uncaught error", t, t.error, t.stack)
end

local function report(t)
  local ok, err = xpcall(M.uncaught, debug.traceback, t)
  if not ok then
    complain("error in the uncaught-error handler", t, err)
  end
end

--- A cancellation decides the outcome once it was raised, even if the function then returned as if
--- nothing had been; a failure of its own still counts more.
local function outcome_of(t)
  local cancelled = t.cancelled
  if not cancelled and not t.failed then
    return "ok"
  elseif t.failed then
    if t.error == INTERRUPTED then
      t.stack = core.coroutine.traceback and core.coroutine.traceback() or t.stack
      return "interrupted"
    elseif not (cancelled and errors.is_cancelled(t.error)) then
      return "failed"
    end
  elseif not (cancelled and t.told) then
    return "ok"
  else
    t.error = cancelled
  end
  return cancelled.kind == "timeout" and "timed_out" or "cancelled"
end

--- Who hears of a failure: whoever awaits the task; else the strict scope that it belongs to; else,
--- when its owner has ended and still nobody asked, the uncaught-error policy.
local function blame(t, scope)
  local outcome, owner = t.outcome, scope.owner
  if outcome == "cancelled" or t.claimed or t.opts and t.opts.detached_errors then
    return
  elseif outcome ~= "failed" and owner and owner.cancelled then
    return -- late with its owner, who says so
  elseif owner then
    local list = scope.unclaimed or {}
    list[#list + 1] = t
    scope.unclaimed = list
  else
    report(t)
  end
end

local function report_unclaimed(scope)
  for _, t in ipairs(scope.unclaimed) do
    if not t.claimed then
      report(t)
    end
  end
  scope.unclaimed = nil
end
M.report_unclaimed = report_unclaimed

--- Tells whoever is to hear of it: siblings and owner in a strict scope, else the policy above.
local function pass_on(t, scope)
  if not scope.strict then
    blame(t, scope)
  elseif not scope.failure and t.outcome ~= "cancelled" then
    scope.failure = t
    cancel.cancel_scope(scope, errors.cancelled(
      ("task %s failed: %s"):format(t.name, tostring(t.error))))
  end
end

local function call_on_end(t, on_end)
  local ok, err = xpcall(on_end, debug.traceback, t)
  if not ok then
    complain("error in on_end", t, err)
  end
end

--- The task is over: its function has returned and it has no children left. The clock is read
--- afresh for tasks of a kind, whose durations are reported.
local function settle(t, outcome)
  local scope, opts, own, joiners = t.scope, t.opts, t.own, t.joiners
  t.outcome, t.at, t.body = outcome, DONE, false
  t.ended_at = opts and opts.kind and clock_now() or queue.now
  queue.live = queue.live - 1
  if t.alarm then
    alarm.clear(t)
  end
  if outcome ~= "ok" then
    pass_on(t, scope)
  end
  if own and own.unclaimed then
    report_unclaimed(own)
  end
  if joiners then
    joiners:wake_all()
  end
  if opts and opts.on_end then
    call_on_end(t, opts.on_end)
  end
  remove(scope, t)
end

--- The task's function is over; its children may live on for a while.
local function end_body(t)
  local own = t.own
  t.body = false
  if not own or own.n == 0 then
    return settle(t, outcome_of(t))
  end
  if t.failed then
    cancel.cancel_below(t, errors.cancelled(("task %s ended: %s"):format(
      t.name, tostring(t.error))))
  end
  t.at = own
  if t.deadline and not t.alarm then
    defer_alarm(t)
  end
end

-- Slices ---------------------------------------------------------------------------------------

--- Until when a cancelled task may run without being interrupted.
local function cleanup_deadline(t, now)
  local kill_at = alarm.kill_at(t)
  if kill_at then
    return kill_at > now + 0.1 and kill_at or now + 0.1
  end
  return now + alarm.grace
end

--- Runs the <close> variables of a suspended or dead task, as this task.
local function close_body(t)
  queue.current = t
  local ok, err = close(t.body)
  queue.current = nil
  return ok, err
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
  close_body(t)
  t.failed, t.error, t.value = true, err, nil
  end_body(t)
end

--- Ends a task that was cancelled before it began.
local function drop(t)
  t.failed, t.error, t.value = true, t.cancelled, nil
  settle(t, outcome_of(t))
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
      drop(t)
      return true
    end
  elseif not t.body then
    if at ~= DONE then -- else it was ended while it was queued
      settle(t, outcome_of(t))
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

-- Deadlines ------------------------------------------------------------------------------------

local function remember(t, now)
  local list = M.abandoned
  list[#list + 1] = {
    name = t.name, site = t:site(), seconds = now - t.started_at, traceback = t.left,
  }
  if #list > REMEMBERED then
    table.remove(list, 1)
  end
end

local abandon

local function abandon_below(t, now, must)
  local scope = t.own
  while scope do
    for child in scope:tasks() do
      child.cancelled = child.cancelled or t.cancelled
      abandon(child, now, must)
    end
    scope = scope.outer
  end
end

--- Closes a suspended task for good. Its <close> variables run, but cannot await.
local function close_now(t, now)
  local source = t.at
  t.left = traceback.of(t)
  t.stack = t.stack or t.left
  t.at = RUNNING
  if type(source) == "table" and source.forget then
    source:forget()
  end
  local ok, err = close_body(t)
  if not ok then
    t.left = ("%s\nerror while it was closed: %s"):format(t.left, tostring(err))
  end
  t.body, t.error = false, t.cancelled
  abandon_below(t, now, true) -- what its <close> variables may have started
  remember(t, now)
  settle(t, "abandoned")
end

--- Ends a task that did not end in its grace, after those below it. One that only waits for those
--- below goes on by itself once they are gone, unless its owner is closed as well (`must`).
---@param t moontide.Task
---@param now number
---@param must boolean
function abandon(t, now, must)
  local at = t.at
  local joins = not t.body or type(at) == "table" and at.firm
  abandon_below(t, now, must or not joins)
  if not must and (joins or type(at) ~= "table") then
    if type(t.at) == "table" then
      defer_alarm(t)
    end
  elseif at == NEW then
    drop(t)
  elseif not t.body then
    settle(t, outcome_of(t))
  else
    close_now(t, now)
  end
end

--- A waiting task's clock entry is due: its sleep is over, its deadline has passed, a shield ends
--- or its grace does. What is not due yet gets a new entry.
function alarm.on_task(t, now)
  if type(t.at) ~= "table" then
    return
  elseif t.cancelled then
    local kill_at = alarm.kill_at(t)
    if kill_at and kill_at <= now then
      return abandon(t, now, false)
    elseif t.shield and t.shield.till <= now then
      cancel.cancel_below(t, t.cancelled)
      return cancel.deliver(t)
    end
  elseif t.deadline and t.deadline <= now then
    return cancel.expire(t)
  end
  if t.at == SLEEP and t.value <= now then
    return queue.ready(t)
  end
  queue.defer_alarm(t)
end

return M
