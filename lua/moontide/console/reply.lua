--- What a request is answered with. Every request ends with exactly one `done`, and nothing of it
--- is sent after that.

local audit = require "moontide.console.audit"
local core = require "moontide.core"

---@alias moontide.console.Status
---| "ok" | "error" | "cancelled" | "timeout" | "refused" | "unknown" | "incomplete"

---@class moontide.console.Reply
---@field session moontide.console.Session
---@field id integer|string|nil of the request
---@field type string of the request
---@field status moontide.console.Status|nil nil: not over yet
---@field audited boolean|nil its end is to be recorded
---@field recorded boolean|nil and was
---@field kept boolean|nil
---@field lasts boolean|nil it goes on to the last moment of the process
---@field failed boolean|nil an answer could not be sent
---@field left integer bytes of output that it may still send
local Reply = {}
Reply.__index = Reply

local M = {
  --- So many bytes of output a request may send; the rest is left out.
  OUTPUT = 1 << 20,
}

-- Of one message.
local PIECE = 65536

---@param session moontide.console.Session
---@param request table
---@return moontide.console.Reply
function M.new(session, request)
  return setmetatable({
    session = session, id = request.id, type = request.type, started_at = core.clock.now(),
    left = M.OUTPUT,
  }, Reply)
end

--- Sends a message of this request; nothing once it is done.
---@param message table
function Reply:send(message)
  if self.status then return end
  message.id = self.id
  if not self.session:send(message) then self.failed = true end
end

---@param fields table
function Reply:value(fields)
  fields.type = "value"
  self:send(fields)
end

---@param fields { message: string, traceback: string|nil }
function Reply:error(fields)
  fields.type = "error"
  self:send(fields)
end

-- How long it has taken so far, to a thousandth.
local function ms_of(reply)
  return math.floor((core.clock.now() - reply.started_at) * 1e6 + 0.5) / 1e3
end

-- The last byte of a piece from `at`: not in the middle of a character.
local function end_of_piece(text, at)
  local stop = at + PIECE - 1
  if stop >= #text then return #text end
  for back = 0, 3 do
    if (text:byte(stop - back + 1) & 0xC0) ~= 0x80 then return stop - back end
  end
  return stop
end

---@param text string
function Reply:out(text)
  if self.left == 0 or text == "" then return end
  local whole, at = #text, 1
  text = text:sub(1, self.left)
  self.left = self.left - #text
  while at <= #text do
    local stop = end_of_piece(text, at)
    self:send { type = "out", text = text:sub(at, stop) }
    at = stop + 1
  end
  if whole == #text then return end
  self.left = 0
  self:send { type = "out", text = ("\n[output beyond %d KiB is left out]\n"):format(
    M.OUTPUT >> 10) }
end

---@param fields table
function Reply:event(fields)
  fields.type = "event"
  self:send(fields)
end

--- The source breaks off: the client may send it again, with more.
function Reply:need_more()
  self:send { type = "need_more" }
end

--- The request outlives the task it was started in: whoever says so calls `done`.
function Reply:keep()
  self.kept = true
end

--- Records how it ends, once: it may be ahead of the end.
---@param status moontide.console.Status
function Reply:record(status)
  if not self.audited or self.recorded then return end
  self.recorded = true
  audit.ended(self, status, ms_of(self))
end

--- Ends the request; again harmless.
---@param status moontide.console.Status|nil default "ok"
function Reply:done(status)
  if self.status then return end
  status = status or "ok"
  if self.failed and status == "ok" then status = "error" end
  self:record(status) -- before the next one of a plain console begins
  self:send { type = "done", status = status, ms = ms_of(self) }
  self.status = status
  self.session:forget(self)
end

--- Refuses the request with a sentence.
---@param message string
---@param status moontide.console.Status|nil default "refused"
function Reply:refuse(message, status)
  self:error { message = message }
  self:done(status or "refused")
end

local STATUS = {
  ok = "ok", failed = "error", cancelled = "cancelled", timed_out = "timeout",
  interrupted = "timeout", abandoned = "cancelled",
}

-- What was raised without a place is a sentence for who asked; a stack would name our own files.
local function traceback(t, text)
  return t.stack and text:find "^[^\n]-:%d+: " and text .. "\n" .. t.stack or nil
end

--- The task of the request has ended.
---@param t moontide.Task
---@param outcome string
function Reply:ended(t, outcome)
  if self.status or (self.kept and outcome == "ok") then return end
  if outcome ~= "ok" then
    local text = require("moontide.pipeline.record").text(t.error)
    self:error { message = text, traceback = traceback(t, text) }
  end
  self:done(STATUS[outcome] or "error")
end

return M
