--- Ends: what a task's outcome is, who hears of a failure, and what an ended task lets go.
local alarm = require "moontide.task.alarm"
local cancel = require "moontide.task.cancel"
local core = require "moontide.core"
local errors = require "moontide.task.errors"
local queue = require "moontide.task.queue"
local scopes = require "moontide.task.scope"
local traceback = require "moontide.task.traceback"

local clock_now, close = core.clock.now, core.coroutine.close
local defer_alarm, remove, DONE = queue.defer_alarm, scopes.remove, queue.DONE
local INTERRUPTED = core.coroutine.interrupted

local M = {}

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
      local stack = core.coroutine.traceback()
      t.stack = stack and traceback.prune(stack) or t.stack
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

--- Reports the failures that nobody has claimed by the end of their scope.
---@param scope moontide.Scope
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
M.end_body = end_body

--- Runs the <close> variables of a suspended or dead task, as this task.
function M.close_body(t)
  queue.current = t
  local ok, err = close(t.body)
  queue.current = nil
  return ok, err
end

--- Ends a task that was cancelled before it began.
function M.drop(t)
  t.failed, t.error, t.value = true, t.cancelled, nil
  settle(t, outcome_of(t))
end

M.outcome_of, M.settle = outcome_of, settle

return M
