--- What an evaluation is answered with: its values, its error, the errors of tasks that it spawned,
--- and the status that it ends with.

local core = require "moontide.core"
local environment = require "moontide.console.environment"
local errors = require "moontide.task.errors"
local exit = require "moontide.exit"
local native = require "moontide.core.evaluation"
local printer = require "moontide.lazy" "moontide.console.printer"
local task = require "moontide.task"
local traceback = require "moontide.task.traceback"

local M = {
  --- Seconds that printing and sending a value may take when its evaluation is cancelled meanwhile.
  ANSWER = 2,
}

local turn_is_over = core.task.turn_is_over
local INTERRUPTED = core.coroutine.interrupted

--- Bytes of an error's message.
local LIMIT = 64 * 1024

-- The frames of what was typed or called, without those of the console; none when all that is
-- left is C, as of an error that a command raises.
local function stack_of(text)
  local lines, has_lua = {}, false
  for line in traceback.prune(text):gmatch "[^\n]+" do
    if not line:find("moontide/console/", 1, true) then
      lines[#lines + 1] = line
      has_lua = has_lua or not (line:find "^%s*%[C%]" or line:find "^%s*%(%.%.%.tail calls%.%.%.%)")
    end
  end
  return has_lua and lines or {}
end

local function with_stack(message, text)
  local lines = stack_of(text)
  if #lines == 0 then return message end
  return ("%s\nstack traceback:\n%s"):format(message, table.concat(lines, "\n"))
end

-- An error may be any value, and have any length; a line of the protocol has not.
local function text_of(err)
  local message = type(err) == "string" and err or printer.text(err)
  if #message <= LIMIT then return message end
  return ("%s... (%d bytes)"):format(message:sub(1, LIMIT), #message)
end

-- A large value is not printed in one go.
local function give_way()
  if turn_is_over() then task.sleep(0) end
end

--- Its function has returned. That, printing, sending, recording and ending are a slice each: who
--- turns the loop by ticks gives us a part of a frame only. What was computed is told, also when
--- the evaluation is cancelled in between.
---@async
---@param evaluation moontide.console.Evaluation
---@param packed { n: integer, [integer]: any }
function M.values(evaluation, packed)
  native.answers()
  local t = evaluation.task
  local alone = not t.own or t.own.n == 0 -- its end is as good as there
  t.shield = { till = core.clock.now() + M.ANSWER }
  task.sleep(0)
  local text = printer.values(packed, nil, give_way)
  local data
  if evaluation.json then data = printer.data_of(packed, nil, give_way) end -- it may be false
  task.sleep(0)
  evaluation.answered = true
  if packed.n > 0 then environment.keep(evaluation.session:environment(), packed[1]) end
  evaluation.reply:value { text = text, n = packed.n, json = data }
  task.sleep(0)
  if not alone then
    t.shield = nil
    core.task.await_point() -- raises if it was cancelled, with what it has spawned
  elseif not evaluation.reply.failed then
    evaluation.reply:record "ok"
    task.sleep(0)
  end
end

--- Its function has raised. Runs in its task: an error's __tostring is the script's.
---@param evaluation moontide.console.Evaluation
---@param err any
function M.error(evaluation, err)
  local message = text_of(err)
  evaluation.answered = true
  evaluation.reply:error {
    message = message, traceback = with_stack(message, evaluation.stack or ""),
  }
end

--- A task that it spawned has failed, and nobody awaited it.
---@param evaluation moontide.console.Evaluation
---@param t moontide.Task
function M.uncaught(evaluation, t)
  if exit.is_exit(t.error) then return end
  if t.outcome == "timed_out" and t.deadline == evaluation.task.deadline then
    evaluation.late = t -- it was only the first to be told
    return
  end
  local text = ("uncaught error in %s: %s"):format(t.name, text_of(t.error))
  evaluation.reply:send { type = "err", text = with_stack(text, t.stack or "") .. "\n" }
end

local STATUS = {
  ok = "ok", failed = "error", cancelled = "cancelled", timed_out = "timeout",
  abandoned = "cancelled",
}

--- Whether an error ends the evaluation rather than being of it: its end says so, and why.
---@param err any
---@return boolean
function M.is_end(err)
  return err == INTERRUPTED or errors.is_cancelled(err) or exit.is_exit(err)
end

-- Why an evaluation was interrupted where its hook did not come: a person's wish, if nothing else.
local function reason_of(t)
  if t.cancelled then return t.cancelled end
  if t.deadline and t.deadline <= core.clock.now() then
    return errors.timeout(t.opts.limit, t.allowed)
  end
  return t.error
end

local function status_of(evaluation, t, outcome)
  if outcome == "interrupted" then
    return reason_of(t).kind == "timeout" and "timeout" or "cancelled"
  elseif outcome == "ok" and evaluation.late then
    return "timeout"
  elseif outcome == "abandoned" and t.cancelled.kind == "timeout" then
    return "timeout"
  end
  return STATUS[outcome]
end

--- It is over, with all that it spawned. In scheduler context.
---@param evaluation moontide.console.Evaluation
---@param t moontide.Task
---@param outcome string
function M.ended(evaluation, t, outcome)
  local cause = evaluation.late or t
  local err = cause.error or cause.cancelled
  if exit.is_exit(err) then return evaluation.reply:done "ok" end
  local status = status_of(evaluation, t, outcome)
  if outcome == "interrupted" then err = reason_of(t) end
  if status ~= "ok" and (status ~= "error" or not evaluation.answered) then
    local message = text_of(err)
    evaluation.reply:error {
      message = message, traceback = with_stack(message, evaluation.stack or cause.stack or ""),
    }
  end
  evaluation.reply:done(status)
end

return M
