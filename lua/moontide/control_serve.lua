--- What comes by the control socket of this process: a takeover is answered here, all else by the
--- console, which is loaded by the first client that asks it something.

local core = require "moontide.core"
local config = require "moontide.config"
local control = require "moontide.control"
local links = require "moontide.control_links"
local native = require "moontide.core.control"
local task = require "moontide.task"

local write = core.log.write

local M = {}

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
    type = "hello", id = message.id, protocol = control.PROTOCOL, version = core.host.version,
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

-- ---- who comes --------------------------------------------------------------------------------

--- Who connects and says nothing must not keep others out for ever, in seconds.
M.SILENCE = 60

-- What does not begin as JSON is a person with `nc -U`.
local function first_word(link, text)
  link.on_text = nil
  if text:sub(1, 1) == "{" then return link:hear(text) end
  console().plain(link, text)
end

-- A task of its own, for the first words make a session, and who turns the loop by ticks gives us a
-- part of a frame only.
local function begin(link, text)
  if link.closed then return end
  link:guarded(first_word, link, text)
  link:release()
end

local function on_first_line(link, text)
  link:spoke()
  link:hold()
  task.start({
    name = "control connection", scope = task.pipeline, kind = "internal",
    on_end = function()
      if link.held then link:close() end -- it did not get to its end: nobody would hear more
    end,
  }, begin, link, text)
end

--- Somebody has connected.
---@param id integer of the core
---@param uid integer
---@param pid integer
function M.accepted(id, uid, pid)
  local link = links.new(id, uid, pid)
  local own = uid == native.uid()
  link.on_message, link.on_text = serve, on_first_line
  if not own and require("moontide.console.policy").of(uid) == "off" then
    return refuse_uid(link, {})
  end
  link:expect_word(M.SILENCE)
  if not own then console().admit(link) end
end

return M
