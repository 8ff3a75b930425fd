--- Evaluations: what a client types runs as a task of its session, one total deadline over it and
--- all that it spawns, and its answer is sent.
---
--- It may await. Where it does not, it yields to the loop all the same (core/lua/evaluation.h), so
--- the host goes on serving beside `while true do end`.

local core = require "moontide.core"
local environment = require "moontide.console.environment"
require "moontide.console.guard"
local native = require "moontide.core.evaluation"
local output = require "moontide.console.output"
local printer = require "moontide.lazy" "moontide.console.printer"
local reading = require "moontide.console.reading"
local record = require "moontide.pipeline.record"
local running = require "moontide.console.running"
local stopping = require "moontide.lazy" "moontide.console.stopping"
local task = require "moontide.task"
local traceback = require "moontide.task.traceback"

local xpcall = core.coroutine.xpcall

local M = {
  --- Seconds, where the request does not say.
  TIMEOUT = 30,
  --- At the same time, of one session.
  MOST = 16,
}

---@class moontide.console.Evaluation
---@field session moontide.console.Session
---@field id integer|string of its request
---@field reply moontide.console.Reply
---@field json boolean|nil
---@field task moontide.Task
---@field interrupts integer

-- ---- answers ------------------------------------------------------------------------------------

-- The frames that are not of what was typed or called.
local function stack_of(text)
  local lines = {}
  for line in traceback.prune(text):gmatch "[^\n]+" do
    if not line:find("moontide/console/", 1, true) then lines[#lines + 1] = line end
  end
  return lines
end

local function with_stack(message, text)
  local lines = stack_of(text)
  if #lines == 0 then return message end
  return ("%s\nstack traceback:\n%s"):format(message, table.concat(lines, "\n"))
end

local function answer_error(evaluation, err, text)
  local message = type(err) == "string" and err or printer.text(err)
  evaluation.answered = true
  evaluation.reply:error { message = message, traceback = with_stack(message, text) }
end

local function json_of(packed)
  if packed.n == 0 then return nil end
  if packed.n == 1 then return printer.data(packed[1]) end
  local list = {}
  for i = 1, packed.n do list[i] = printer.data(packed[i]) end
  return require("moontide.json").array(list)
end

local function answer(evaluation, packed)
  local text = printer.values(packed)
  local data
  if evaluation.json then data = json_of(packed) end -- it may be false
  evaluation.answered = true
  if packed.n > 0 then environment.keep(evaluation.session:environment(), packed[1]) end
  evaluation.reply:value { text = text, n = packed.n, json = data }
end

-- ---- the task -----------------------------------------------------------------------------------

-- An error with the stack that it was raised on.
local Raised = {}

local function on_error(err)
  return setmetatable({ err = err, stack = debug.traceback("", 2) }, Raised)
end

local function body(evaluation, chunk)
  local packed = table.pack(xpcall(chunk, on_error))
  local ok, raised = packed[1], packed[2]
  if ok then
    return answer(evaluation, table.pack(table.unpack(packed, 2, packed.n)))
  elseif getmetatable(raised) ~= Raised then -- no stack was left for the handler
    raised = { err = raised, stack = "" }
  end
  environment.keep_error(evaluation.session:environment(), raised.err)
  evaluation.stack = raised.stack
  if not task.is_cancelled(raised.err) then answer_error(evaluation, raised.err, raised.stack) end
  error(raised.err, 0)
end

local STATUS = {
  ok = "ok", failed = "error", cancelled = "cancelled", timed_out = "timeout",
  abandoned = "cancelled",
}

-- What an interrupt from outside of Lua was: the deadline's, or a person's.
local function status_of(t, outcome)
  if outcome == "interrupted" then
    return t.deadline and t.deadline <= core.clock.now() and "timeout" or "cancelled"
  elseif outcome == "abandoned" and t.cancelled.kind == "timeout" then
    return "timeout"
  end
  return STATUS[outcome]
end

-- In scheduler context: nothing of the script runs here.
local function ended(evaluation, t, outcome)
  local err = t.error or t.cancelled
  output.release()
  if require("moontide.exit").is_exit(err) then return evaluation.reply:done "ok" end
  local status = status_of(t, outcome)
  if status ~= "ok" and (status ~= "error" or not evaluation.answered) then
    local message = record.text(err)
    evaluation.reply:error {
      message = message, traceback = with_stack(message, evaluation.stack or t.stack or ""),
    }
  end
  evaluation.reply:done(status)
end

local function name_of(source)
  local line = source:gsub("%s+", " "):gsub("%c", "?")
  return "eval " .. (#line > 40 and line:sub(1, 37) .. "..." or line)
end

-- The scope of a session's evaluations: what runs in it carries the hook.
local function scope_of(session)
  if not session.evaluations then
    local scope = task.new_scope("evaluations of console session " .. session.id, session.scope)
    native.evaluates(scope)
    session.evaluations = scope
  end
  return session.evaluations
end

local function run(evaluation, source, chunk, timeout)
  local _ = stopping.step -- loads it: it hears of late ones
  output.hold()
  evaluation.reply:keep()
  evaluation.task = scope_of(evaluation.session):start({
    name = name_of(source), kind = "console", site = "the console", timeout = timeout,
    limit = "the evaluation's deadline", detached_errors = true,
    on_end = function(t, _, outcome) ended(evaluation, t, outcome) end,
  }, body, evaluation, chunk)
  running.add(evaluation.task, evaluation)
end

-- ---- requests -----------------------------------------------------------------------------------

-- Why it may not run, or nil.
local function refusal(session, source)
  if session.policy == "eval" then return nil end
  local commands = require "moontide.console.commands"
  local command = commands.find(reading.command(source) or "")
  if not command then
    return "the policy is inspect: only a command, with plain values, can be evaluated; "
      .. "help() lists them"
  elseif command.needs ~= "inspect" then
    return ("the policy is inspect: %s changes something"):format(command.name)
  end
end

local function timeout_of(request)
  local timeout = request.timeout
  if timeout == nil then return M.TIMEOUT end
  if type(timeout) == "number" and timeout > 0 and timeout < math.huge then return timeout end
  error("eval: timeout has to be a number of seconds, more than 0", 0)
end

local function count(scope)
  return scope and scope.n or 0
end

--- Evaluates the source of a request. The reply is done when the task and all that it spawned have
--- ended.
---@param session moontide.console.Session
---@param request { id: integer|string, source: string, timeout: number|nil, json: boolean|nil }
---@param reply moontide.console.Reply
function M.start(session, request, reply)
  local source, timeout = request.source, timeout_of(request)
  local why = refusal(session, source)
  if why then return reply:refuse(why) end
  if count(session.evaluations) >= M.MOST then
    return reply:refuse(("%d evaluations of this session run already"):format(M.MOST))
  end
  local chunk, problem = reading.read(source, session:environment())
  if not chunk then
    if problem.incomplete then
      reply:need_more()
      return reply:done "incomplete"
    end
    environment.keep_error(session:environment(), problem.message)
    reply:error { message = problem.message }
    return reply:done "error"
  end
  local evaluation = {
    session = session, id = request.id, reply = reply, json = request.json, interrupts = 0,
  }
  reply.evaluation = evaluation
  run(evaluation, source, chunk, timeout)
end

--- Interrupts an evaluation: the first time it is cancelled where it is, the second time nothing of
--- it survives its next instruction, the third time it is closed.
---@param session moontide.console.Session
---@param id integer|string of its request
---@return boolean whether there is one
function M.interrupt(session, id)
  local reply = session.running[id]
  local evaluation = reply and reply.evaluation
  if not evaluation then return false end
  evaluation.interrupts = evaluation.interrupts + 1
  stopping.step(evaluation.task, evaluation.interrupts)
  return true
end

return M
