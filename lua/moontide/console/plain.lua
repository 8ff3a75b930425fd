--- The console of `nc -U`: a line is Lua, its answer is text, then comes a prompt. Lines that
--- arrive while one runs wait for it; input that is not finished takes the next line with it.

local audit = require "moontide.console.audit"
local sessions = require "moontide.console.session"
local text_of = require "moontide.text"

local M = {}

-- A page of the net that posts to a socket speaks HTTP, and must not get to speak Lua.
local METHODS = {
  GET = true, HEAD = true, POST = true, PUT = true, DELETE = true, OPTIONS = true, PATCH = true,
  CONNECT = true, TRACE = true, PRI = true,
}

--- Whether a line could begin a request of HTTP.
---@param line string
---@return boolean
function M.is_http(line)
  local method, target = line:match "^(%u+) (%S+)"
  if not method then return false end
  return line:find(" HTTP/%d", 1) ~= nil or (METHODS[method] and target:find "^[/*]" ~= nil)
    or false
end

local RENDER = {
  out = function(message) return message.text end,
  err = function(message) return message.text end,
  value = function(message)
    return message.text and message.text ~= "" and text_of.line(message.text) or nil
  end,
  error = function(message)
    return text_of.failure(message.message, message.traceback)
  end,
  need_more = function() return nil end,
  event = function(message)
    if message.event == "state" then return ("-- %s\n"):format(message.state) end
    return message.text and text_of.line(message.text)
  end,
}

--- A message as a person reads it; nil: it says nothing.
---@param message table
---@return string|nil
function M.render(message)
  local fn = RENDER[message.type]
  return fn and fn(message)
end

-- Asks for the next line: all that is there is one source if the last was not finished.
local function go_on(session, state)
  local text = table.remove(state.lines, 1)
  if not text then return end
  state.bytes = state.bytes - #text
  state.source = state.source and state.source .. "\n" .. text or text
  state.id = state.id + 1
  state.busy = true
  require("moontide.console.server").ask(session,
    { id = state.id, type = "eval", source = state.source })
end

-- A reply is over: the prompt, and the next.
local function prompt(session, state, status)
  state.busy = false
  if status ~= "incomplete" then state.source = nil end
  session:write(state.source and ">> " or "> ")
  go_on(session, state)
end

local function hear(session, state, text)
  text = text:gsub("\r$", "")
  if M.is_http(text) then
    audit.refused(session, "it speaks HTTP", text)
    return session:close "it speaks HTTP"
  end
  state.bytes = state.bytes + #text
  if state.bytes > sessions.LINE then
    session:write "too much waits for its turn: 1 MiB of lines at most\n"
    return session:close "too many lines wait"
  end
  state.lines[#state.lines + 1] = text
  if not state.busy then go_on(session, state) end
end

--- A connection speaks plainly: all its lines are Lua.
---@async
---@param link moontide.Link
---@param text string the first
function M.begin(link, text)
  if M.is_http(text) then
    audit.refused(link, "it speaks HTTP", (text:gsub("\r$", "")))
    return link:close()
  end
  local session, why = sessions.of(link), nil
  local is_new = not session
  if is_new then session, why = sessions.open(link) end
  if not session then
    audit.refused(link, why)
    link:write(why .. "\n")
    return link:close()
  end
  local state = { lines = {}, bytes = 0, id = 0 }
  session.render = function(message)
    if message.type == "done" then
      prompt(session, state, message.status)
      return nil
    end
    return M.render(message)
  end
  link.on_text = function(_, line) hear(session, state, line) end
  if is_new then session:settle_in_slowly() end
  if not session.closed then hear(session, state, text) end
end

return M
