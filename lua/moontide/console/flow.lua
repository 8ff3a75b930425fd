--- What a client does not do: read, ask, or leave. Tasks of a session that wait for it, with a
--- bound; while it behaves there is one of them, which sleeps until it would have been idle.

local config = require "moontide.config"
local core = require "moontide.core"
local native = require "moontide.core.control"
local task = require "moontide.task"

local write, now = core.log.write, core.clock.now

local M = {
  --- So many bytes may wait for a client to read.
  QUEUED = 4 << 20,
  --- From so many bytes on who prints waits for it, where that may await.
  ROOM = 1 << 20,
  --- So long it may read nothing at all while something waits, in seconds.
  STALLED = 10,
  --- How often it is looked after who has closed only its direction, in seconds.
  LOOK = 0.25,
}

local function start(session, what, fn)
  task.start({ name = ("console session %d: %s"):format(session.id, what), kind = "console",
    scope = session.scope, detached_errors = true }, fn, session)
end

local function drop(session, why)
  write(2, "console", "session dropped: " .. why, "session", session.id, "uid", session.uid, "pid",
    session.pid, "comm", session.comm)
  session:close(why)
end

-- ---- reading ------------------------------------------------------------------------------------

--- Whether the client has taken all that was sent.
---@param session moontide.console.Session
---@return boolean
function M.is_read(session)
  return native.queued(session.link.id) == 0
end

local function wait_until_read(session)
  local queued, seen = native.queued(session.link.id)
  local since = now()
  while queued > 0 do
    task.sleep(session.leaving and 0.02 or 0.5)
    local sent
    queued, sent = native.queued(session.link.id)
    if sent ~= seen then seen, since = sent, now() end
    if now() - since > M.STALLED then return drop(session, "the client does not read") end
  end
  session.is_watched = nil
  if session.leaving then session:close(session.leaving) end
end

--- Something waits for the client to read.
---@param session moontide.console.Session
---@param bytes integer
function M.queued(session, bytes)
  if bytes > M.QUEUED then return drop(session, "the client reads too slowly") end
  if session.is_watched then return end
  session.is_watched = true
  start(session, "reader", wait_until_read)
end

-- Whether the running code may await: it is a task, and in nothing like table.sort.
local function may_await()
  return coroutine.isyieldable() and (pcall(core.task.await_point))
end

--- What is printed faster than it is read waits, rather than be the end of the session.
---@param session moontide.console.Session
function M.wait_for_room(session)
  if not session.is_watched or native.queued(session.link.id) < M.ROOM or not may_await() then
    return
  end
  repeat task.sleep(0.002) until session.closed or native.queued(session.link.id) < M.ROOM
end

-- ---- asking -------------------------------------------------------------------------------------

local function wait_until_idle(session)
  local limit = config.get "console.idle_timeout"
  repeat
    task.sleep(math.max(0.001, session.heard_at + limit - now()))
    if not session:is_idle() then session.heard_at = now() end
  until now() - session.heard_at >= limit
  local why = "nothing was asked for " .. require("moontide.duration").format(limit)
  session:send { type = "event", event = "closed", text = why }
  session:close(why)
end

--- Ends the session when nothing is asked for too long. What runs counts as asked.
---@param session moontide.console.Session
function M.watch_idle(session)
  start(session, "idle", wait_until_idle)
end

-- ---- leaving ------------------------------------------------------------------------------------

local function wait_until_gone(session)
  repeat task.sleep(M.LOOK) until native.gone(session.link.id)
  session:close "the client went away"
end

--- A client that sends no more may still wait for an answer, or be gone: the kernel cannot tell
--- that without waking us all the time.
---@param session moontide.console.Session
function M.watch_half(session)
  start(session, "half closed", wait_until_gone)
end

return M
