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
---@field kept boolean|nil
local Reply = {}
Reply.__index = Reply

local M = {}

---@param session moontide.console.Session
---@param request table
---@return moontide.console.Reply
function M.new(session, request)
  return setmetatable({
    session = session, id = request.id, type = request.type, started_at = core.clock.now(),
  }, Reply)
end

--- Sends a message of this request; nothing once it is done.
---@param message table
function Reply:send(message)
  if self.status then return end
  message.id = self.id
  self.session:send(message)
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

---@param text string
function Reply:out(text)
  self:send { type = "out", text = text }
end

---@param fields table
function Reply:event(fields)
  fields.type = "event"
  self:send(fields)
end

function Reply:need_more()
  self:send { type = "need_more" }
end

--- The request outlives the task it was started in: whoever says so calls `done`.
function Reply:keep()
  self.kept = true
end

--- Ends the request; again harmless.
---@param status moontide.console.Status|nil default "ok"
function Reply:done(status)
  if self.status then return end
  local seconds = core.clock.now() - self.started_at
  local ms = math.floor(seconds * 1e6 + 0.5) / 1e3
  status = status or "ok"
  self:send { type = "done", status = status, ms = ms }
  self.status = status
  self.session:forget(self)
  if self.audited then audit.ended(self, ms) end
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

--- The task of the request has ended.
---@param t moontide.Task
---@param outcome string
function Reply:ended(t, outcome)
  if self.status or (self.kept and outcome == "ok") then return end
  if outcome ~= "ok" then
    local text = require("moontide.pipeline.record").text(t.error)
    self:error { message = text, traceback = t.stack or nil }
  end
  self:done(STATUS[outcome] or "error")
end

return M
