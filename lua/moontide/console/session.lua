--- Sessions: one a connection, from its first request to its end. A session owns what it started:
--- tasks, traces and watches end with it. None of that keeps the process up.

local audit = require "moontide.console.audit"
local config = require "moontide.config"
local core = require "moontide.core"
local flow = require "moontide.console.flow"
local json = require "moontide.json"
local policy = require "moontide.console.policy"
local task = require "moontide.task"

local write = core.log.write

---@class moontide.console.Session
---@field id integer
---@field uid integer
---@field pid integer
---@field comm string|nil the name of the process at the other end
---@field policy "inspect"|"eval"
---@field env table|nil environment of evaluations, made by their first
---@field scope moontide.Scope of its tasks
---@field running table<integer|string, moontide.console.Reply> requests that are not done, by id
---@field count integer of those
---@field link moontide.Link
---@field heard_at number when it last asked for something, or was answered
---@field ended boolean|nil the client sends no more
---@field render (fun(message: table): string|nil)|nil how it is told; nil: as JSON
---@field leaving string|nil why it is closed once its client has read all
---@field is_watched boolean|nil something waits for the client to read
---@field closers table<table, fun()> what `on_close` was given
---@field closed string|nil why
---@field opening boolean|nil its first request is there, and begins in a moment
local Session = {}
Session.__index = Session

local M = {
  --- A line has at most so many bytes, in both directions.
  LINE = 1 << 20,
}

---@type table<moontide.Link, moontide.console.Session>
local sessions = {}
local open_count, last_id = 0, 0

-- ---- all of them --------------------------------------------------------------------------------

---@return integer
function M.count()
  return open_count
end

---@return fun(): moontide.console.Session|nil the open ones, oldest first
function M.each()
  local list, i = {}, 0
  for _, session in pairs(sessions) do list[#list + 1] = session end
  table.sort(list, function(a, b) return a.id < b.id end)
  return function()
    i = i + 1
    return list[i]
  end
end

--- The session of a connection, if it has one.
---@param link moontide.Link
---@return moontide.console.Session|nil
function M.of(link)
  return sessions[link]
end

-- ---- opening ------------------------------------------------------------------------------------

-- Nothing more comes: what runs may end, and be answered.
local function on_over(session, why)
  if why == "too long" then
    session:send { type = "error", message = "a line has at most 1 MiB: this one has no end" }
    return session:close "a line was too long"
  end
  session.ended = true
  if session:is_idle() then return session:leave "the client has said all" end
  flow.watch_half(session)
end

--- Opens the session of a connection, which is to settle in.
---@param link moontide.Link
---@return moontide.console.Session|nil
---@return string|nil why
function M.open(link)
  local allowed, most = policy.of(link.uid), config.get "console.sessions"
  if allowed == "off" then return nil, ("the console is off for user %d"):format(link.uid) end
  if open_count >= most then
    return nil, ("too many sessions: %d are open, console.sessions allows no more"):format(most)
  end
  open_count, last_id = open_count + 1, last_id + 1
  local session = setmetatable({
    id = last_id, uid = link.uid, pid = link.pid, policy = allowed, link = link,
    scope = task.new_scope("console session " .. last_id), running = {}, count = 0,
    closers = {}, heard_at = core.clock.now(),
  }, Session)
  sessions[link] = session
  link.on_forget = function() session:close "the client went away" end
  link.on_over = function(_, why) on_over(session, why) end
  return session
end

--- The rest of its opening: it gets to know who is there, and is closed when nothing is asked.
function Session:settle_in()
  self.comm = audit.comm(self.pid)
  flow.watch_idle(self)
  write(0, "console", "session opened", "session", self.id, "uid", self.uid, "pid", self.pid,
    "comm", self.comm, "policy", self.policy)
end

--- The same in slices of its own, between its opening and its first request: who turns the loop by
--- ticks gives us a part of a frame only.
---@async
function Session:settle_in_slowly()
  self.opening = true
  task.sleep(0)
  if not self.closed then self:settle_in() end
  task.sleep(0)
  self.opening = nil
end

--- The environment of its evaluations.
---@return table
function Session:environment()
  self.env = self.env or require("moontide.console.environment").new(self)
  return self.env
end

-- ---- requests -----------------------------------------------------------------------------------

--- A request is in flight.
---@param reply moontide.console.Reply
function Session:remember(reply)
  self.running[reply.id] = reply
  self.count = self.count + 1
  self.heard_at = core.clock.now()
end

--- It is not any more.
---@param reply moontide.console.Reply
function Session:forget(reply)
  if reply.id == nil or self.running[reply.id] ~= reply then return end
  self.running[reply.id] = nil
  self.count = self.count - 1
  self.heard_at = core.clock.now()
  if self.ended and self:is_idle() then self:leave "the client has said all" end
end

--- Whether nothing of it is in flight.
---@return boolean
function Session:is_idle()
  return self.count == 0
end

-- ---- sending ------------------------------------------------------------------------------------

-- A message as a line; nil and what to say instead, when it is too long.
local function encode(message)
  local ok, text = pcall(json.encode, message)
  if ok and #text < M.LINE then return text .. "\n" end
  local why = ok and ("the answer has %d bytes; a line has at most 1 MiB"):format(#text)
    or "the answer cannot be told as JSON: " .. tostring(text)
  return nil, json.encode { type = "error", id = message.id, message = why } .. "\n"
end

--- Sends a message to the client. A client that does not read is dropped.
---@param message table
---@return boolean sent false: it could not be said; the client got an error instead
function Session:send(message)
  if self.closed then return true end
  local text, instead
  if self.render then text = self.render(message) else text, instead = encode(message) end
  if text or instead then self:write(text or instead) end
  return not instead
end

--- Sends bytes as they are.
---@param text string
function Session:write(text)
  local ok, queued = self.link:write(text)
  if not ok then return self:close "the client went away" end
  if queued > 0 then flow.queued(self, queued) end
end

--- Output of a request; nothing once that is done.
---@param id integer|string
---@param text string
function Session:out(id, text)
  local reply = self.running[id]
  if not reply then return end
  reply:out(text)
  flow.wait_for_room(self)
end

--- Writes a record into the audit.
---@param action string
---@param text string
function Session:audit(action, text)
  audit.action(self, action, text)
end

-- ---- the end ------------------------------------------------------------------------------------

--- Calls `fn` when the session ends.
---@param fn fun()
---@return fun() cancel
function Session:on_close(fn)
  if self.closed then
    fn()
    return function() end
  end
  local key = {}
  self.closers[key] = fn
  return function() self.closers[key] = nil end
end

--- Ends it when the client has read what was sent.
---@param why string
function Session:leave(why)
  self.leaving = why
  if flow.is_read(self) then self:close(why) end
end

--- Ends it at once: what it started is cancelled.
---@param why string
function Session:close(why)
  if self.closed then return end
  self.closed = why
  sessions[self.link] = nil
  open_count = open_count - 1
  self.scope:cancel("the console session ended: " .. why)
  for _, fn in pairs(self.closers) do
    local ok, err = pcall(fn)
    if not ok then write(3, "console", "a session did not end cleanly: " .. tostring(err)) end
  end
  self.link:close()
  write(0, "console", "session closed", "session", self.id, "why", why)
end

return M
