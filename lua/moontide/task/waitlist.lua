--- Who waits for a thing: the list behind events, channels, task ends and scope ends.
---
--- A task in the list is waiting only while its source is the list; a cancelled one is left in
--- place as a dead entry and dropped when half of the list is dead, so that leaving costs O(1).
local queue = require "moontide.task.queue"

---@class moontide.WaitList
---@field of any what is waited for: a task, a scope, or anything with a `what`
---@field n integer
---@field dead integer
---@field firm boolean|nil a cancellation does not end the wait (a join whose tasks end with it)
local WaitList = {}
WaitList.__index = WaitList

local M = {}

---@param of any
---@return moontide.WaitList
function M.new(of)
  return setmetatable({ of = of, n = 0, dead = 0 }, WaitList)
end

--- Suspends the task until it is taken out again.
---@param t moontide.Task
function WaitList:wait(t)
  local n = self.n + 1
  self.n = n
  self[n] = t
  queue.suspend(t, self)
end

--- Makes everybody in the list runnable, first come first.
function WaitList:wake_all()
  local head, n = self.head or 1, self.n
  self.head, self.n, self.dead = nil, 0, 0
  for i = 1, n do
    local t = self[i]
    self[i] = nil
    if i >= head and t.source == self and t.state == "waiting" then
      queue.ready(t)
    end
  end
end

--- Takes the first one out that still waits, without waking it.
---@return moontide.Task|nil
function WaitList:take()
  local head, n = self.head or 1, self.n
  while head <= n do
    local t = self[head]
    self[head] = false
    head = head + 1
    if t and t.source == self and t.state == "waiting" then
      self.head = head
      return t
    end
  end
  for i = 1, n do
    self[i] = nil
  end
  self.head, self.n, self.dead = nil, 0, 0
end

--- A task left the list by cancellation; its source has been changed already.
function WaitList:forget()
  self.dead = self.dead + 1
  if self.dead * 2 <= self.n then
    return
  end
  local kept = 0
  for i = self.head or 1, self.n do
    local t = self[i]
    if t and t.source == self then
      kept = kept + 1
      self[kept] = t
    end
  end
  for i = kept + 1, self.n do
    self[i] = nil
  end
  self.head, self.n, self.dead = nil, kept, 0
end

--- Whether anybody waits.
---@return boolean
function WaitList:any()
  for i = self.head or 1, self.n do
    local t = self[i]
    if t and t.source == self and t.state == "waiting" then
      return true
    end
  end
  return false
end

return M
