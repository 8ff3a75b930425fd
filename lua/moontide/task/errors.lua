--- The error values that the task runtime raises: tables with a kind, so that code can tell them
--- apart, and a message, so that people can. Pure.
local M = {}

---@class moontide.TaskError
---@field kind "cancelled"|"timeout"|"self_wait"
---@field message string
---@field reason string|nil why it was cancelled
---@field by string|nil the task that cancelled it
---@field limit string|nil whose deadline passed
---@field seconds number|nil how long the task had
local TaskError = {}
TaskError.__index = TaskError
TaskError.__name = "moontide.TaskError"

function TaskError:__tostring()
  return self.message
end

---@param reason string|nil
---@param by string|nil who cancels
---@return moontide.TaskError
function M.cancelled(reason, by)
  reason = reason == nil and "cancelled" or tostring(reason)
  local message = reason == "cancelled" and reason or "cancelled: " .. reason
  return setmetatable({ kind = "cancelled", reason = reason, message = message, by = by },
    TaskError)
end

---@param limit string whose deadline it was: "its own timeout", "phase db"
---@param seconds number|nil
---@return moontide.TaskError
function M.timeout(limit, seconds)
  local message = "timed out: " .. limit
  if seconds then
    message = ("%s of %.3g s"):format(message, seconds)
  end
  return setmetatable({
    kind = "timeout", reason = message, limit = limit, seconds = seconds, message = message,
  }, TaskError)
end

---@param message string
---@return moontide.TaskError
function M.self_wait(message)
  return setmetatable({ kind = "self_wait", message = message }, TaskError)
end

--- True for a cancellation and for a deadline that passed, which is one too.
---@param err any
---@return boolean
function M.is_cancelled(err)
  if getmetatable(err) ~= TaskError then
    return false
  end
  return err.kind == "cancelled" or err.kind == "timeout"
end

return M
