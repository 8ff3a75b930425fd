--- Connections to other processes by the control socket: from lines to messages, requests and their
--- replies.
--
-- Both sides speak JSON, an object a line: `type` says what it is, a reply has the `id` of its
-- request.

local alarm = require "moontide.task.alarm"
local core = require "moontide.core"
local files = require "moontide.control_files"
local json = require("moontide.lazy") "moontide.json"
local native = require "moontide.core.control"
local task = require "moontide.task"

local write = core.log.write

local M = {}

---@class moontide.Link a connection to another process
---@field id integer of the core
---@field uid integer
---@field pid integer
---@field on_message fun(link: moontide.Link, message: table) what is no reply
---@field on_text fun(link: moontide.Link, text: string)|nil takes lines as they are
---@field on_closed fun(link: moontide.Link)|nil the other side is gone
---@field on_over fun(link: moontide.Link, why: "ended"|"too long")|nil nothing more comes; whoever
--- sets it closes the link
---@field on_forget fun()|nil it is closed, by whichever side
---@field closed boolean|nil
---@field silence integer|nil the timer of who has said nothing yet
---@field held string[]|nil lines that wait for `release`
---@field held_over "ended"|"too long"|nil why nothing comes after those
local Link = {}
Link.__index = Link

local links = {} -- by id

--- Takes up a connection of the core's.
---@param id integer
---@param uid integer
---@param pid integer
---@return moontide.Link
function M.new(id, uid, pid)
  local link = setmetatable({ id = id, uid = uid, pid = pid, asked = 0, waiters = {} }, Link)
  links[id] = link
  return link
end

--- All that are open.
---@return table<integer, moontide.Link>
function M.all()
  return links
end

-- Whoever waits for an answer will get none.
local function forget(link)
  links[link.id] = nil
  link.closed = true
  link:spoke()
  if link.on_forget then link.on_forget() end
  for _, waiter in pairs(link.waiters) do waiter:wake(nil) end
end

--- Closes it unless it says something soon.
---@param seconds number
function Link:expect_word(seconds)
  self.silence = alarm.timer(core.clock.now() + seconds, function()
    self.silence = nil
    self:close()
  end)
end

--- It has said something, or never will.
function Link:spoke()
  if self.silence then alarm.cancel_timer(self.silence) end
  self.silence = nil
end

--- Sends a message, and descriptors with it. False when the other side is gone.
---@param message table
---@param fds integer[]|nil they stay ours
---@return boolean
function Link:send(message, fds)
  return (self:write(json.encode(message) .. "\n", fds))
end

--- Sends bytes as they are. False when the other side is gone.
---@param text string
---@param fds integer[]|nil they stay ours
---@return boolean
---@return integer|nil queued how many bytes wait for the other side to read
function Link:write(text, fds)
  if self.closed then return false end
  local ok = native.send(self.id, text, fds)
  return ok == true, ok and native.queued(self.id)
end

--- Sends a request and waits for the reply.
---@async
---@param message table
---@param seconds number
---@return table|nil reply
---@return string|nil why "closed" or "timeout"
function Link:ask(message, seconds)
  self.asked = self.asked + 1
  local id, waiter = self.asked, task.waiter("an answer of process " .. self.pid)
  message.id = id
  self.waiters[id] = waiter
  if not self:send(message) then return nil, "closed" end
  local ok, reply = pcall(task.timeout, seconds, function() return waiter:wait() end)
  self.waiters[id] = nil
  if ok and reply then return reply end
  return nil, ok and "closed" or "timeout"
end

--- Closes it; again harmless. `on_closed` is not called.
function Link:close()
  if self.closed then return end
  forget(self)
  native.finish(self.id)
end

--- Descriptors that have come; they are the caller's.
---@return integer[]
function Link:take()
  return self.closed and {} or native.take(self.id)
end

--- Works on a line.
---@param text string
function Link:hear(text)
  if self.on_text then return self:on_text(text) end
  local message = json.decode(text)
  if type(message) ~= "table" then
    self:send { type = "error", message = "a JSON object a line is wanted" }
    return self:close()
  end
  local waiter = message.id and self.waiters[message.id]
  if waiter then return waiter:wake(message) end
  self:on_message(message)
end

--- Calls fn(...): what another process sends must not end this one.
---@param fn fun(...)
function Link:guarded(fn, ...)
  local ok, err = pcall(fn, ...)
  if ok then return end
  write(3, "control", "a message could not be worked on: " .. tostring(err), "pid", self.pid)
  self:close()
end

local function gone(link)
  forget(link)
  if link.on_closed then link:guarded(link.on_closed, link) end
end

-- Nothing more comes, but it can still be answered.
local function hear_over(link, why)
  if link.on_over then return link:guarded(link.on_over, link, why) end
  if why == "too long" then
    link:send { type = "error", message = "a line has at most 1 MiB: this one has no end" }
  end
  native.finish(link.id)
  gone(link)
end

--- What comes waits for `release`: what came before is still worked on.
function Link:hold()
  self.held = {}
end

--- Hears what has come meanwhile, and while that is worked on, in order.
---@async
function Link:release()
  local held, i = self.held, 1
  while held[i] and not self.closed do
    self:guarded(self.hear, self, held[i])
    i = i + 1
  end
  self.held = nil
  if self.held_over and not self.closed then hear_over(self, self.held_over) end
end

local function on_line(id, text)
  local link = links[id]
  if not link then return end
  if link.held then
    link.held[#link.held + 1] = text
  else
    link:guarded(link.hear, link, text)
  end
end

local function on_over(id, why)
  local link = links[id]
  if not link then return native.finish(id) end
  if link.held then
    link.held_over = why
  else
    hear_over(link, why)
  end
end

local function on_closed(id)
  local link = links[id]
  if link then gone(link) end
end

native.on { line = on_line, over = on_over, closed = on_closed }

--- Connects to another process. A file whose process has died is removed.
---@param path string
---@return moontide.Link|nil
---@return string|nil message nil with no link: nobody is there
function M.connect(path)
  local id, name, message = native.connect(path)
  if name == "ECONNREFUSED" then
    -- Or it is bound and will listen in a moment.
    local owner = path:match "(%d+)%.sock$"
    if not (owner and core.files.list("/proc/" .. owner)) then files.remove(path) end
    return nil
  elseif name == "ENOENT" then
    return nil
  elseif not id then
    return nil, ("%s: %s"):format(path, message)
  end
  local uid, pid = native.peer(id)
  local link = M.new(id, uid, pid)
  link.on_message = function() end
  if uid == native.uid() then return link end
  link:close()
  return nil, ("%s: it is answered by user %d, you are user %d"):format(path, uid, native.uid())
end

return M
