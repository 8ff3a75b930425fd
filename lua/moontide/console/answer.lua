--- What an evaluation is answered with: its values, its error, the errors of tasks that it spawned,
--- and the status that it ends with.

local core = require "moontide.core"
local environment = require "moontide.console.environment"
local errors = require "moontide.task.errors"
local exit = require "moontide.exit"
local printer = require "moontide.lazy" "moontide.console.printer"
local record = require "moontide.pipeline.record"
local traceback = require "moontide.task.traceback"

local M = {}

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

-- A message of the script's may have any length; a line of the protocol has not.
local function bounded(message)
  if #message <= LIMIT then return message end
  return ("%s... (%d bytes)"):format(message:sub(1, LIMIT), #message)
end

--- Its function has returned.
---@param evaluation moontide.console.Evaluation
---@param packed { n: integer, [integer]: any }
function M.values(evaluation, packed)
  local text = printer.values(packed)
  local data
  if evaluation.json then data = printer.data_of(packed) end -- it may be false
  evaluation.answered = true
  if packed.n > 0 then environment.keep(evaluation.session:environment(), packed[1]) end
  evaluation.reply:value { text = text, n = packed.n, json = data }
end

--- Its function has raised. Runs in its task: an error's __tostring is the script's.
---@param evaluation moontide.console.Evaluation
---@param err any
function M.error(evaluation, err)
  local message = bounded(type(err) == "string" and err or printer.text(err))
  evaluation.answered = true
  evaluation.reply:error {
    message = message, traceback = with_stack(message, evaluation.stack or ""),
  }
end

--- A task that it spawned has failed, and nobody awaited it.
---@param evaluation moontide.console.Evaluation
---@param t moontide.Task
function M.uncaught(evaluation, t)
  if t.outcome == "timed_out" and t.deadline == evaluation.task.deadline then
    evaluation.late = t -- it was only the first to be told
    return
  end
  local text = ("uncaught error in %s: %s"):format(t.name, bounded(record.text(t.error)))
  evaluation.reply:send { type = "err", text = with_stack(text, t.stack or "") .. "\n" }
end

local STATUS = {
  ok = "ok", failed = "error", cancelled = "cancelled", timed_out = "timeout",
  abandoned = "cancelled",
}

-- What an interrupt from outside of Lua was: the deadline's, or a person's.
local function status_of(evaluation, t, outcome)
  if outcome == "interrupted" then
    return t.deadline and t.deadline <= core.clock.now() and "timeout" or "cancelled"
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
  if outcome == "interrupted" and status == "timeout" then
    err = errors.timeout(t.opts.limit, t.allowed)
  end
  if status ~= "ok" and (status ~= "error" or not evaluation.answered) then
    local message = bounded(record.text(err))
    evaluation.reply:error {
      message = message, traceback = with_stack(message, evaluation.stack or cause.stack or ""),
    }
  end
  evaluation.reply:done(status)
end

return M
