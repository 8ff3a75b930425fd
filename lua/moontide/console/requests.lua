--- What can be asked, by type: fn(session, request, reply). Each runs in a task of the session of
--- its own, but for those in `M.immediate`. One that returns without `reply:done` has ended "ok",
--- one that raises "error"; `reply:keep()` says that somebody else will call `done`.

local config = require "moontide.config"
local core = require "moontide.core"
local task = require "moontide.task"

local M = {
  ---@type table<string, fun(session: moontide.console.Session, request: table,
  --- reply: moontide.console.Reply)>
  handlers = {},
  --- Answered at once, also while everything else waits.
  immediate = { hello = true, interrupt = true },
  --- Recorded before they begin and when they end: what of the request stands in the audit.
  ---@type table<string, fun(request: table): string>
  audited = {
    eval = function(request) return request.source end,
    drain = function(request) return request.reason or (request.dry and "dry") or "" end,
  },
}

local handlers = M.handlers

-- A field of a request, of the type that it has to have; without a default it has to be there.
-- Raises a sentence for the client.
local function field(request, name, kind, default)
  local value = request[name]
  if value == nil and default ~= nil then return default end
  local is = math.type(value) == "integer" and kind == "integer" and kind or type(value)
  if is ~= kind then
    error(("%s: %s has to be %s %s, not %s"):format(request.type, name,
      kind == "integer" and "an" or "a", kind, value == nil and "left out" or "a " .. type(value)),
      0)
  end
  return value
end

function handlers.hello(session, _, reply)
  reply:send {
    type = "hello", protocol = require("moontide.control").PROTOCOL, version = core.host.version,
    name = config.get "name", pid = core.host.pid, state = core.state.get(),
    policy = session.policy, session = session.id,
  }
  reply:done()
end

function handlers.eval(session, request, reply)
  field(request, "source", "string")
  require("moontide.console.evaluate").start(session, request, reply)
end

-- Whatever it is, its task can be cancelled; an evaluation knows better.
function handlers.interrupt(session, request, reply)
  local other = request.of ~= nil and session.running[request.of]
  if not other or other == reply then
    return reply:refuse("there is no request of that id to interrupt", "unknown")
  end
  local evaluation = other.type == "eval"
    and require("moontide.console.evaluate").interrupt(session, request.of)
  if not evaluation and other.task then other.task:cancel "interrupted by the client" end
  reply:done()
end

function handlers.complete(session, request, reply)
  local source = field(request, "source", "string")
  local cursor = field(request, "cursor", "integer", #source + 1)
  local from, items = require("moontide.console.complete").at(session:environment(), source,
    cursor)
  if not from then return reply:refuse(items, "error") end
  reply:value { from = from, items = require("moontide.json").array(items) }
end

function handlers.help(session, request, reply)
  local name = field(request, "name", "string", "")
  local text, message = require("moontide.console.help").of(session:environment(), name)
  if not text then return reply:refuse(message, "unknown") end
  reply:value { text = text }
end

-- ---- status -------------------------------------------------------------------------------------

local ORDER = { starting = 1, ready = 2, draining = 3, stopped = 4 }

local function answer(reply)
  reply:value { status = require("moontide.console.status").collect() }
end

-- Answers when the state is reached or passed: in the move itself, for behind the last one nothing
-- else runs.
local function answer_at(wanted, reply)
  local state = core.state.get()
  if ORDER[state] < ORDER[wanted] then return false end
  answer(reply)
  if state ~= wanted then
    reply:error { message = ("the state is past %s: it is %s"):format(wanted, state) }
  end
  reply:done(state == wanted and "ok" or "error")
  return true
end

local function wait_for(wanted, seconds, reply)
  if answer_at(wanted, reply) then return end
  local waiter = task.waiter("the state " .. wanted)
  local cancel = require("moontide.states").on_state(function()
    if answer_at(wanted, reply) then waiter:wake() end
  end)
  local _ <close> = setmetatable({}, { __close = cancel })
  reply.lasts = true
  if pcall(task.timeout, seconds, function() waiter:wait() end) then return end
  task.sleep(0) -- raises, if it was not the time
  answer(reply)
  reply:done "timeout"
end

function handlers.status(_, request, reply)
  local wanted = request.wait
  if wanted == nil then return answer(reply) end
  if not ORDER[wanted] then
    error(require("moontide.suggest").unknown("state", tostring(wanted),
      require("moontide.states").NAMES), 0)
  end
  wait_for(wanted, field(request, "timeout", "number", 30), reply)
end

-- ---- drain, tail --------------------------------------------------------------------------------

function handlers.drain(session, request, reply)
  if not request.dry and session.policy ~= "eval" then
    return reply:refuse "the policy is inspect: a drain can only be looked at, with dry"
  end
  require("moontide.console.steer").request(session, request, reply)
end

function handlers.tail(session, request, reply)
  require("moontide.console.tail").start(session, request, reply)
end

return M
