--- The event: set once, seen by all, now and later.
local await_point = require("moontide.core").task.await_point
local waitlist = require "moontide.task.waitlist"

---@class moontide.Event
---@field what string
---@field value any
local Event = {}
Event.__index = Event

local M = {}

---@param name string|nil
---@return moontide.Event
function M.new(name)
  local self = setmetatable({ what = name and "event " .. name or "event", done = false }, Event)
  self.waiters = waitlist.new(self)
  return self
end

--- Wakes all that wait, and lets later waits return at once. The first value stays.
---@param value any
---@return boolean first
function Event:set(value)
  if self.done then
    return false
  end
  self.done, self.value = true, value
  self.waiters:wake_all()
  return true
end

---@return boolean
function Event:is_set()
  return self.done
end

--- Waits until it is set.
---@async
---@return any value what set was given
function Event:wait()
  local t = await_point()
  if not self.done then
    self.waiters:wait(t)
  end
  return self.value
end

return M
