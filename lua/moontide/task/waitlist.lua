--- Who waits for a thing: the list behind events, channels, task ends and scope ends.
---
--- An entry counts only while the task stands at this list; one whose task was cancelled is left
--- in place and dropped when half of the list is dead, so that leaving costs O(1).
local mechanism = require("moontide.core").task

---@class moontide.WaitList
---@field of any what is waited for: a task, a scope, or anything with a `what`
---@field head integer
---@field n integer
---@field dead integer
---@field firm boolean|nil a cancellation does not end the wait: what it waits for ends with it
local WaitList = {}
WaitList.__index = WaitList

local M = {}

local stands_at = mechanism.stands_at

---@param of any
---@return moontide.WaitList
function M.new(of)
  return setmetatable({ of = of, head = 1, n = 0, dead = 0 }, WaitList)
end

--- Suspends the running task t until it is taken out again.
---@type fun(self: moontide.WaitList, t: moontide.Task)
WaitList.wait = mechanism.enlist

--- Makes everybody in the list runnable, first come first.
---@type fun(self: moontide.WaitList)
WaitList.wake_all = mechanism.wake_all

--- Takes the first one out that still waits, without waking it.
---@return moontide.Task|nil
function WaitList:take()
  for i = self.head, self.n do
    local t = self[i]
    self[i] = nil
    if stands_at(t, self) then
      self.head = i + 1
      return t
    end
    self.dead = math.max(self.dead - 1, 0)
  end
  self.head, self.n, self.dead = 1, 0, 0
end

--- A task has left the list by its cancellation: it stands elsewhere already.
function WaitList:forget()
  self.dead = self.dead + 1
  if self.dead * 2 <= self.n - self.head + 1 then
    return
  end
  local kept = 0
  for i = self.head, self.n do
    local t = self[i]
    self[i] = nil
    if stands_at(t, self) then
      kept = kept + 1
      self[kept] = t
    end
  end
  self.head, self.n, self.dead = 1, kept, 0
end

return M
