--- The console's server: from a line of the control socket to a request and its end.
---
--- Loaded by the first client. A request is a JSON object with `id` and `type`; README.md of this
--- folder has the protocol.

local audit = require "moontide.console.audit"
local core = require "moontide.core"
local flow = require "moontide.console.flow"
local replies = require "moontide.console.reply"
local requests = require "moontide.console.requests"
local sessions = require "moontide.console.session"
local suggest = require "moontide.lazy" "moontide.suggest"
local task = require "moontide.task"

local M = {
  --- By type; a module may add its own.
  requests = requests.handlers,
  --- So many requests of a session run at once.
  AT_ONCE = 32,
}

-- An id that can be a key and costs little to repeat.
local function is_id(id)
  return math.type(id) == "integer"
    or (type(id) == "string" and #id <= 64 and not id:find "%c")
end

-- What is wrong with the id: an answer that bore it would be taken for another's.
local function id_problem(session, request)
  if not is_id(request.id) then
    return "a request has an id: an integer, or a text of at most 64 printable bytes"
  elseif session.running[request.id] then
    return ("request %s is still running: each has an id of its own"):format(request.id)
  end
end

-- What else is wrong with a request, and how it ends.
local function problem(session, request)
  if session.count >= M.AT_ONCE and not requests.immediate[request.type] then
    return ("%d requests of this session are running: no more at once"):format(session.count),
      "refused"
  elseif type(request.type) ~= "string" then
    return "a request has a type: a text", "unknown"
  elseif not M.requests[request.type] then
    return suggest.unknown("request", request.type, suggest.names(M.requests)), "unknown"
  end
end

-- Once: before it begins, or when it has ended before it began.
local function record(session, request, reply)
  local text = requests.audited[request.type]
  if not text or reply.audited then return end
  reply.audited = true
  audit.action(session, request.type, tostring(text(request)), request.id)
end

-- What is recorded takes a slice of the loop of its own.
local function work(session, request, reply)
  if requests.audited[request.type] then
    record(session, request, reply)
    task.sleep(0)
  end
  return M.requests[request.type](session, request, reply)
end

local function start(session, request, reply)
  session:remember(reply)
  if requests.immediate[request.type] then return work(session, request, reply) end
  reply.task = task.start({
    name = ("console %s %s"):format(request.type, request.id), kind = "console",
    scope = session.scope, detached_errors = true,
    on_end = function(t, _, outcome)
      record(session, request, reply)
      reply:ended(t, outcome)
    end,
  }, work, session, request, reply)
end

-- Says why there is no session, and that this was all.
local function turn_away(link, request, why)
  audit.refused(link, why)
  local id = is_id(request.id) and request.id or nil
  link:send { type = "error", id = id, message = why }
  link:send { type = "done", id = id, status = "refused", ms = 0 }
  link:close()
end

-- The session of a connection; nil: there can be none, and it was told so.
local function session_of(link, request)
  local session = sessions.of(link)
  if session then return session end
  local opened, why = sessions.open(link)
  if not opened then turn_away(link, request, why) end
  return opened
end

--- A client asks. Its session takes a slice of the loop of its own where that can be.
---@param link moontide.Link
---@param request table
function M.asked(link, request)
  local is_new = not sessions.of(link)
  local session = session_of(link, request)
  if session and is_new then
    if task.current() then session:settle_in_slowly() else session:settle_in() end
  end
  if session and not session.closed then M.ask(session, request) end
end

--- Begins a request of a session.
---@param session moontide.console.Session
---@param request table
---@return moontide.console.Reply
function M.ask(session, request)
  local reply = replies.new(session, request)
  local message, status = id_problem(session, request), "refused"
  if message then reply.id = nil else message, status = problem(session, request) end
  if message then reply:refuse(message, status) else start(session, request, reply) end
  return reply
end

--- Another user's client has connected, one of those that may: it has a session at once, so that
--- such clients are no more than sessions.
---@param link moontide.Link
function M.admit(link)
  local session = session_of(link, {})
  if session then session:settle_in() end
end

--- A person types, without a client.
---@param link moontide.Link
---@param text string the first line
function M.plain(link, text)
  require("moontide.console.plain").begin(link, text)
end

-- ---- what all sessions are told -----------------------------------------------------------------

require("moontide.states").on_state(function(_, to)
  for session in sessions.each() do
    session:send { type = "event", event = "state", state = to }
  end
end)

-- ---- the end ------------------------------------------------------------------------------------

--- How long evaluations may take to end when the process does, and clients to read their answers,
--- in seconds.
M.FAREWELL = 0.25

local function cancel(session)
  for _, reply in pairs(session.running) do
    local running = not reply.lasts and (reply.evaluation or reply).task
    if running then running:cancel "the process ends" end
  end
end

-- Whether a session is answered all that it will be, has ended what it started, and has read it.
local function is_over(session)
  if session.opening and not session.closed then return false end
  local evaluations = session.evaluations
  if evaluations and evaluations:count() > 0 then return false end
  for _, reply in pairs(session.running) do
    if not reply.lasts then return false end
  end
  return session.closed ~= nil or flow.is_read(session)
end

local function all_over(list)
  for _, session in ipairs(list) do
    if not is_over(session) then return false end
  end
  return true
end

--- The last phase is over, the process will end: what clients run is cancelled and answered. At
--- most half of the time that is left of the total goes into that.
---@async
---@param total_end number|nil when the process must have ended, on the clock's scale
function M.part(total_end)
  local list = {}
  for session in sessions.each() do
    list[#list + 1] = session
    cancel(session)
  end
  local now = core.clock.now()
  local till = now + math.min(M.FAREWELL, ((total_end or math.huge) - now) / 2)
  while not all_over(list) and core.clock.now() < till do task.sleep(0.002) end
end

--- The process ends now: the clients are told how it was. Nothing waits here, so that whoever sees
--- the state "stopped" sees the exit code as well.
---@param summary moontide.Report|nil
function M.finish(summary)
  local text = summary and require("moontide.observe.report.lines").text(summary)
  local readers = package.loaded["moontide.observe.readers"]
  if readers then readers.flush() end
  for session in sessions.each() do
    for _, reply in pairs(session.running) do reply:done "cancelled" end
    if text then session:send { type = "event", event = "report", text = text } end
    session:close "the process ends"
  end
end

return M
