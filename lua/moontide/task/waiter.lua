--- The waiter: one wait of one task for one callback. What bindings are made of.
---
--- wake and fail may come from anywhere, before the wait, twice, or after the task was cancelled;
--- the first counts and only queues the task.
local mechanism = require("moontide.core").task

---@class moontide.Waiter
---@field what string what it waits for, as status shows it
---@field task moontide.Task|nil
---@field settled boolean|nil
local Waiter = {}
Waiter.__index = Waiter

local M = {}

local wake, stands_at = mechanism.wake, mechanism.stands_at

---@param what string|nil
---@return moontide.Waiter
function M.new(what)
  return setmetatable({ what = what or "a callback" }, Waiter)
end

local function settle(self)
  if self.settled then
    return false
  end
  self.settled = true
  if self.task then
    wake(self.task, self)
  end
  return true
end

--- Lets the wait return these values.
---@return boolean first false when it was woken before
function Waiter:wake(...)
  if not self.settled then
    self.n = select("#", ...)
    if self.n <= 1 then
      self.value = ...
    else
      self.value = { ... }
    end
  end
  return settle(self)
end

--- Lets the wait raise this error.
---@param err any
---@return boolean first
function Waiter:fail(err)
  if not self.settled then
    self.failed, self.value = true, err
  end
  return settle(self)
end

--- Whether a task waits for it right now; not one that was cancelled meanwhile.
---@return boolean
function Waiter:is_waited_for()
  return self.task ~= nil and not self.settled and stands_at(self.task, self)
end

--- Suspends the running task until wake or fail.
---@async
---@return any ... what wake was given
function Waiter:wait()
  local t = mechanism.await_point()
  if not self.settled then
    if self.task and stands_at(self.task, self) then
      error("this waiter has a task waiting already: one waiter is for one wait", 2)
    end
    self.task = t
    mechanism.suspend(self)
  end
  local value = self.value
  if self.failed then
    error(value, 0)
  elseif self.n > 1 then
    return table.unpack(value, 1, self.n)
  end
  return value
end

return M
