--- Evaluations: what a client types runs as a task of its session, one total deadline over it and
--- all that it spawns, and its answer is sent.
---
--- It may await. Where it does not, it yields to the loop all the same (core/lua/evaluation.h), so
--- the host goes on serving beside `while true do end`.

local answer = require "moontide.console.answer"
local core = require "moontide.core"
local ends = require "moontide.task.ends"
local environment = require "moontide.console.environment"
require "moontide.console.guard"
local native = require "moontide.core.evaluation"
local output = require "moontide.console.output"
local reading = require "moontide.console.reading"
local running = require "moontide.console.running"
local stopping = require "moontide.console.stopping"
local task = require "moontide.task"

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
---@field answered boolean|nil the value or the error was sent
---@field stack string|nil where its function raised
---@field late moontide.Task|nil a task of its own that has met the deadline before it
---@field unwatch fun() nobody needs to stop it any more

---@class moontide.console.Session
---@field evaluations moontide.Scope|nil of its evaluations, whose code carries the hook

---@class moontide.console.Reply
---@field evaluation moontide.console.Evaluation|nil

-- ---- the task -----------------------------------------------------------------------------------

local function body(evaluation, chunk)
  -- The value stays what it is: `<close>` variables see it after this.
  local packed = table.pack(xpcall(chunk, function(err)
    evaluation.stack = debug.traceback("", 2)
    return err
  end))
  if packed[1] then
    return answer.values(evaluation, table.pack(table.unpack(packed, 2, packed.n)))
  end
  local err = packed[2]
  environment.keep_error(evaluation.session:environment(), err)
  if not answer.is_end(err) then answer.error(evaluation, err) end
  error(err, 0)
end

local function ended(evaluation, t, outcome)
  output.release()
  evaluation.unwatch()
  answer.ended(evaluation, t, outcome)
end

-- What a task fails with that somebody spawned at the console, and nobody awaited, is no reason to
-- end the process.
local elsewhere = ends.uncaught
task.on_uncaught(function(t)
  local evaluation = running.of(t)
  if evaluation then answer.uncaught(evaluation, t) else elsewhere(t) end
end)

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
  output.hold()
  evaluation.reply:keep()
  evaluation.task = scope_of(evaluation.session):start({
    name = name_of(source), kind = "console", site = "the console", timeout = timeout,
    limit = "the evaluation's deadline", detached_errors = true,
    on_end = function(t, _, outcome) ended(evaluation, t, outcome) end,
  }, body, evaluation, chunk)
  running.add(evaluation.task, evaluation)
  evaluation.unwatch = evaluation.session:on_close(function()
    evaluation.unwatch = stopping.all(evaluation.task)
  end)
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
