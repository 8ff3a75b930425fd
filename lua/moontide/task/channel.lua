--- The channel: values from tasks to tasks, in order, with room for n of them.
---
--- A value that was handed to a waiting receiver is received even if that task is cancelled in the
--- same turn: its wait returns, and its next await raises.
local mechanism = require("moontide.core").task
local waitlist = require "moontide.task.waitlist"

---@class moontide.Channel
---@field what string
---@field capacity integer
---@field closed boolean
local Channel = {}
Channel.__index = Channel

local M = {}

---@param capacity integer|nil how many values it holds without a receiver; default 0
---@return moontide.Channel
function M.new(capacity)
  capacity = capacity or 0
  if math.type(capacity) ~= "integer" or capacity < 0 then
    error("channel: the capacity must be a whole number, 0 or more", 3)
  end
  local self = setmetatable({
    what = "channel", capacity = capacity, closed = false,
    first = 1, last = 0, items = {},
  }, Channel)
  self.receivers = waitlist.new(self)
  self.senders = waitlist.new(self)
  return self
end

--- Hands a value over; waits while the channel is full. Raises if it is closed.
---@async
---@param value any not nil
function Channel:send(value)
  if value == nil then
    error("channel: cannot send nil, which says that the channel is closed", 2)
  end
  local t = mechanism.await_point()
  if self.closed then
    error("channel: send on a closed channel", 2)
  end
  local receiver = self.receivers:take()
  if receiver then
    receiver.value = value
    mechanism.ready(receiver)
    return
  elseif self.last - self.first + 1 < self.capacity then
    self.last = self.last + 1
    self.items[self.last] = value
    return
  end
  t.value = value
  self.senders:wait(t)
  if t.value ~= nil then
    t.value = nil
    error("channel: closed while a send waited", 2)
  end
end

--- Moves the value of the first waiting sender into the channel, or returns it.
local function from_sender(self)
  local sender = self.senders:take()
  if not sender then
    return nil
  end
  local value = sender.value
  sender.value = nil
  mechanism.ready(sender)
  return value
end

--- Takes the next value; waits while there is none. nil when the channel is closed and empty.
---@async
---@return any
function Channel:receive()
  local t = mechanism.await_point()
  local first = self.first
  if first <= self.last then
    local value = self.items[first]
    self.items[first] = nil
    self.first = first + 1
    local next_value = from_sender(self)
    if next_value ~= nil then
      self.last = self.last + 1
      self.items[self.last] = next_value
    end
    return value
  end
  local value = from_sender(self)
  if value ~= nil or self.closed then
    return value
  end
  t.value = nil
  self.receivers:wait(t)
  value = t.value
  t.value = nil
  return value
end

--- Nothing is sent any more: receivers get what is left, then nil; waiting senders raise.
function Channel:close()
  if not self.closed then
    self.closed = true
    self.senders:wake_all()
    self.receivers:wake_all()
  end
end

return M
