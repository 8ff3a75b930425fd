--- Ends: what a task's outcome is, and who hears of a failure. A task that just returns comes here
--- only when somebody is to be told.
local cancel = require "moontide.lazy" "moontide.task.cancel"
local core = require "moontide.core"
local ended = require "moontide.lazy" "moontide.task.ended"
local errors = require "moontide.task.errors"
local traceback = require "moontide.lazy" "moontide.task.traceback"

local mechanism = core.task
local settle, policy = mechanism.settle, mechanism.policy
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

policy("on_end_error", function(t, err)
  complain("error in on_end", t, err)
end)

--- Message handler at the base of each task: keeps the stack, also of the task that the error came
--- from. A cancelled task that ends by its cancellation needs none.
mechanism.on_error(function(err)
  local t = mechanism.current()
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
end)

-- Outcomes -------------------------------------------------------------------------------------

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

local function settle_as_it_did(t)
  settle(t, outcome_of(t))
end
M.settle_as_it_did = settle_as_it_did
policy("end_later", settle_as_it_did)

--- The function of a task that was cancelled or has failed is over; its children may live on for a
--- while.
local function end_body(t)
  local own = t.own
  if not own or own.n == 0 then
    return settle_as_it_did(t)
  end
  if t.failed then
    cancel.cancel_below(t, errors.cancelled(("task %s ended: %s"):format(
      t.name, tostring(t.error))))
  end
  mechanism.join_own(t)
end
policy("end_body", end_body)

--- A slice ended neither in an await nor with its function's return. Either the function "raised",
--- or the coroutine "died" of an interruption that none could stop, or the task "left" where it
--- stands, which counts as its cancellation, or it has "yielded" by itself, which only coroutines
--- that it made may do.
policy("broken", function(t, how, err)
  if how == "left" then
    t.cancelled = t.cancelled or errors.cancelled(err)
    err = t.cancelled
  elseif how == "yielded" then
    t.stack = traceback.prune(debug.traceback(t.body))
    err = "a task must not call coroutine.yield; to let others run, call tide.sleep(0)"
  end
  mechanism.close(t)
  t.failed, t.error, t.value = true, err, nil
  end_body(t)
end)

--- Ends a task that was cancelled before it began.
local function drop(t)
  t.cancelled = t.cancelled or t.scope.cancelled
  t.failed, t.error, t.value = true, t.cancelled, nil
  settle_as_it_did(t)
end
M.drop = drop
policy("drop", drop)

-- Who hears of it ------------------------------------------------------------------------------

--- Who hears of a failure: whoever awaits the task; else the strict scope that it belongs to; else,
--- when its owner has ended and still nobody asked, the uncaught-error policy.
local function blame(t, scope)
  local outcome, owner, opts = t.outcome, scope.owner, t.opts
  if outcome == "cancelled" or t.claimed or opts and opts.detached_errors then
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

--- Remembers it, and tells whoever is to hear of it: siblings and owner in a strict scope, else the
--- policy above.
policy("pass_on", function(t, scope)
  ended.note(t)
  if not scope.strict then
    blame(t, scope)
  elseif not scope.failure and t.outcome ~= "cancelled" then
    scope.failure = t
    cancel.cancel_scope(scope, errors.cancelled(
      ("task %s failed: %s"):format(t.name, tostring(t.error))))
  end
end)

--- Reports the failures that nobody has claimed by the end of their scope.
---@param scope moontide.Scope
function M.report_unclaimed(scope)
  for _, t in ipairs(scope.unclaimed or {}) do
    if not t.claimed then
      report(t)
    end
  end
  scope.unclaimed = nil
end
policy("own_ended", M.report_unclaimed)

policy("wake_all", function(joiners)
  joiners:wake_all()
end)

return M
