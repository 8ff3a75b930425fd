--- The control socket: how other processes of the same user reach this one.
--
-- A Unix socket in a directory that nobody else can enter, named NAME-PID.sock, so that a name
-- finds its processes. Both sides speak JSON, an object a line: `type` says what it is, a reply has
-- the `id` of its request. A takeover is answered here (`M.serves`), all else by the console, which
-- is loaded by the first client that asks it something.

local core = require "moontide.core"
local config = require "moontide.config"
local files = require "moontide.control_files"
local json = require("moontide.lazy") "moontide.json"
local native = require "moontide.core.control"
local task = require "moontide.task"

local write = core.log.write

local M = {
  --- What both sides of a takeover must agree on.
  PROTOCOL = 1,
}

-- ---- links --------------------------------------------------------------------------------------

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
local Link = {}
Link.__index = Link

local links = {} -- by id

local function new_link(id, uid, pid)
  local link = setmetatable({ id = id, uid = uid, pid = pid, asked = 0, waiters = {} }, Link)
  links[id] = link
  return link
end

-- Whoever waits for an answer will get none.
local function forget(link)
  links[link.id] = nil
  link.closed = true
  if link.silent then link.silent:cancel "closed" end
  if link.on_forget then link.on_forget() end
  for _, waiter in pairs(link.waiters) do waiter:wake(nil) end
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

local function hear(link, text)
  if link.on_text then return link.on_text(link, text) end
  local message = json.decode(text)
  if type(message) ~= "table" then
    link:send { type = "error", message = "a JSON object a line is wanted" }
    return link:close()
  end
  local waiter = message.id and link.waiters[message.id]
  if waiter then return waiter:wake(message) end
  link.on_message(link, message)
end

-- What another process sends must not end this one.
local function guarded(link, fn, ...)
  local ok, err = pcall(fn, ...)
  if ok then return end
  write(3, "control", "a message could not be worked on: " .. tostring(err), "pid", link.pid)
  link:close()
end

local function on_line(id, text)
  local link = links[id]
  if link then guarded(link, hear, link, text) end
end

local function on_closed(id)
  local link = links[id]
  if not link then return end
  forget(link)
  if link.on_closed then guarded(link, link.on_closed, link) end
end

-- Nothing more comes, but it can still be answered.
local function on_over(id, why)
  local link = links[id]
  if not link then return native.finish(id) end
  if link.on_over then return guarded(link, link.on_over, link, why) end
  if why == "too long" then
    link:send { type = "error", message = "a line has at most 1 MiB: this one has no end" }
  end
  native.finish(id)
  on_closed(id)
end

-- ---- serving ------------------------------------------------------------------------------------

local function console()
  return require "moontide.console.server"
end

local function refuse(link, message, why, text)
  link:send { type = "refused", id = message.id, why = why, message = text }
  link:close()
end

-- Anybody may try again and again; a record a second says enough.
local told_at, untold = -math.huge, 0

-- A takeover gives all sockets away: that is for the same user alone.
local function refuse_uid(link, message)
  local now = core.clock.now()
  if now - told_at >= 1 then
    write(2, "control", "a control connection was refused: it is another user's", "uid", link.uid,
      "pid", link.pid, "more", untold > 0 and untold or nil)
    told_at, untold = now, 0
  else
    untold = untold + 1
  end
  refuse(link, message, "uid", ("process %d belongs to user %d, you are user %d"):format(
    core.host.pid, native.uid(), link.uid))
end

local function hello(link, message)
  if message.want == "console" then return console().asked(link, message) end
  if link.uid ~= native.uid() then return refuse_uid(link, message) end
  local takeover = require "moontide.takeover_offer"
  link:send {
    type = "hello", id = message.id, protocol = M.PROTOCOL, version = core.host.version,
    name = config.get "name", pid = core.host.pid, state = core.state.get(),
    listeners = takeover.count(),
  }
end

local function takeover(link, message)
  if link.uid ~= native.uid() then return refuse_uid(link, message) end
  if core.host.mode ~= "process" then
    return refuse(link, message, "embedded", "the host is part of another program")
  end
  require("moontide.takeover_offer").asked(link, message)
end

--- Requests that are answered here, by type.
---@type table<string, fun(link: moontide.Link, message: table)>
M.serves = { hello = hello, takeover = takeover }

local function serve(link, message)
  local fn = M.serves[message.type]
  if fn then return fn(link, message) end
  console().asked(link, message)
end

-- What does not begin as JSON is a person with `nc -U`.
local function first_line(link, text)
  link.on_text = nil
  link.silent:cancel "it speaks"
  if text:sub(1, 1) == "{" then return hear(link, text) end
  console().plain(link, text)
end

-- Who connects and says nothing must not keep others out for ever, in seconds.
M.SILENCE = 60

local function wait_for_word(link)
  task.sleep(M.SILENCE)
  link:close()
end

local function on_accepted(id, uid, pid)
  local link = new_link(id, uid, pid)
  local own = uid == native.uid()
  link.on_message, link.on_text = serve, first_line
  if not own and require("moontide.console.policy").of(uid) == "off" then
    return refuse_uid(link, {})
  end
  link.silent = task.start({ name = "control connection", scope = task.pipeline,
    kind = "internal" }, wait_for_word, link)
  if not own then console().admit(link) end
end

native.on { accepted = on_accepted, line = on_line, over = on_over, closed = on_closed }

-- ---- where --------------------------------------------------------------------------------------

--- The directory of the control sockets: `control.dir`, else in what systemd or the session gives,
--- else in /tmp.
---@return string
function M.directory()
  return files.directory(native.uid())
end

-- Whether other users are to reach it: `console.uids`.
local function shared()
  local uids = config.get "console.uids"
  return uids ~= nil and #uids > 0
end

-- A socket that has moved: the handle of the former one is there for a turn of the loop.
local function listen(directory, file)
  if M.path then
    native.unlisten()
    M.path = nil
    task.sleep(0.001)
  end
  return native.listen(directory, file, shared())
end

--- Opens this process's socket; again harmless. That it cannot is no reason not to serve. Opened
--- while the main chunk still runs, it moves when the settings then say something else.
---@async
function M.open()
  if not config.get "control.socket" then return end
  local directory, file = M.directory(), files.file(config.get "name", core.host.pid)
  local path = directory .. "/" .. file
  if M.path == path then return end
  local ok, _, message = listen(directory, file)
  if not ok then
    if M.failure == message then return end -- it was tried before, in a long start
    M.failure = message
    return write(2, "control", ("no control socket, so no takeover of this process and no console: "
      .. "%s (control.dir says where it goes, control.socket = false that there is none)"):format(
      message))
  end
  M.path = path
  write(0, "control", "control socket", "path", path)
end

--- The host has stopped in a program that goes on: nobody shall wait for answers that cannot come.
--- A process keeps its socket to the end, for its watchdog still answers beside it.
function M.leave()
  if core.host.mode == "process" then return end
  native.unlisten()
  M.path = nil
  for _, link in pairs(links) do
    if not link.on_forget then link:close() end
  end
end

--- The sockets of other processes of our name.
---@return { pid: integer, path: string }[]|nil
---@return string|nil message why nobody can be looked for
function M.others()
  local directory, list = M.directory(), {}
  local ok, name, message = native.directory(directory, shared(), false)
  if not ok and name == "ENOENT" then return list end
  if not ok then return nil, message end
  local title = files.title(config.get "name")
  for _, other in ipairs(files.list(directory)) do
    if other.name == title and other.pid ~= core.host.pid then list[#list + 1] = other end
  end
  return list
end

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
  local link = new_link(id, uid, pid)
  link.on_message = function() end
  if uid == native.uid() then return link end
  link:close()
  return nil, ("%s: it is answered by user %d, you are user %d"):format(path, uid, native.uid())
end

return M
