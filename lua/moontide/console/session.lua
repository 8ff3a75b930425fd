--- Sessions: one a connection, from its first request to its end. A session owns what it started:
--- tasks, traces and watches end with it.

local audit = require "moontide.console.audit"
local config = require "moontide.config"
local core = require "moontide.core"
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
---@field link moontide.Link
---@field render fun(message: table): string|nil how it is told; nil: as JSON
---@field closed boolean|nil
local Session = {}
Session.__index = Session

local M = {}

---@type table<moontide.Link, moontide.console.Session>
local sessions = {}
local last_id = 0
-- Sees /proc even when the script has taken `io` away.
local open_file = io.open

local function comm_of(pid)
  local file = open_file(("/proc/%d/comm"):format(pid))
  if not file then return nil end
  local name = file:read "l"
  file:close()
  return name
end

---@return integer
function M.count()
  local n = 0
  for _ in pairs(sessions) do n = n + 1 end
  return n
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

--- Opens the session of a connection.
---@param link moontide.Link
---@return moontide.console.Session|nil
---@return string|nil why
function M.open(link)
  local allowed = policy.of(link.uid)
  local comm = comm_of(link.pid)
  if allowed == "off" then return nil, "the console is off for user " .. link.uid end
  local most = config.get "console.sessions"
  if M.count() >= most then
    return nil, ("too many sessions: %d are open, and console.sessions allows no more"):format(most)
  end
  last_id = last_id + 1
  local session = setmetatable({
    id = last_id, uid = link.uid, pid = link.pid, comm = comm, policy = allowed, link = link,
    scope = task.new_scope("console session " .. last_id), running = {}, closers = {},
  }, Session)
  sessions[link] = session
  link.on_closed = function() session:close "the client went away" end
  write(0, "console", "session opened", "session", session.id, "uid", session.uid, "pid",
    session.pid, "comm", comm, "policy", allowed)
  return session
end

--- The environment of its evaluations.
---@return table
function Session:environment()
  self.env = self.env or require("moontide.console.environment").new(self)
  return self.env
end

--- Sends a message to the client.
---@param message table
function Session:send(message)
  if self.closed then return end
  local text = self.render and self.render(message)
  if not self.render then text = json.encode(message) .. "\n" end
  if text and not self.link:write(text) then self:close "the client went away" end
end

--- Output of a request; nothing once that is done.
---@param id integer|string
---@param text string
function Session:out(id, text)
  local reply = self.running[id]
  if reply then reply:out(text) end
end

--- A request is not in flight any more.
---@param reply moontide.console.Reply
function Session:forget(reply)
  if reply.id ~= nil and self.running[reply.id] == reply then self.running[reply.id] = nil end
end

--- Calls `fn` when the session ends.
---@param fn fun()
---@return fun() cancel
function Session:on_close(fn)
  local key = {}
  self.closers[key] = fn
  return function() self.closers[key] = nil end
end

--- Writes a record into the audit.
---@param action string
---@param text string
function Session:audit(action, text)
  audit.action(self, action, text)
end

--- Ends it: what it started is cancelled.
---@param why string
function Session:close(why)
  if self.closed then return end
  self.closed = true
  sessions[self.link] = nil
  self.scope:cancel("the console session ended: " .. why)
  for _, fn in pairs(self.closers) do
    local ok, err = pcall(fn)
    if not ok then write(3, "console", "a session did not end cleanly: " .. tostring(err)) end
  end
  self.link:close()
  write(0, "console", "session closed", "session", self.id, "why", why)
end

return M
