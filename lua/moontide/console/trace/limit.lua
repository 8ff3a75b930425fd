--- How much of something is shown: so many in each piece of time; what comes beyond is counted, and
--- the number is told at the end of the piece.

local alarm = require "moontide.task.alarm"
local core = require "moontide.core"
local duration = require "moontide.duration"

local now = core.clock.now

---@class moontide.console.Limit
---@field max integer
---@field per number seconds
---@field shown integer in the present piece of time
---@field more integer left out of it
---@field ends number when it ends
---@field timer integer|nil that tells how many were left out
local Limit = {}
Limit.__index = Limit

local M = {}

---@param max integer
---@param per number seconds
---@param tell fun(text: string)
---@return moontide.console.Limit
function M.new(max, per, tell)
  return setmetatable({ max = max, per = per, tell = tell, shown = 0, more = 0, ends = 0 }, Limit)
end

--- "at most 20 in 1s"
---@return string
function Limit:text()
  return ("at most %d in %s"):format(self.max, duration.format(self.per))
end

-- Tells what was left out.
local function flush(self)
  local more = self.more
  if self.timer then alarm.cancel_timer(self.timer) end
  self.more, self.timer = 0, nil
  if more == 0 then return end
  self.tell(("… %d more in %s"):format(more, self.per == 1 and "this second"
    or "these " .. duration.format(self.per)))
end

-- An alarm has no owner to tell of an error: there must be none.
local function on_alarm(self)
  return function()
    self.timer = nil
    pcall(flush, self)
  end
end

--- Whether one more may be shown; if not, it is counted.
---@return boolean
function Limit:admit()
  local at = now()
  if at >= self.ends then
    flush(self)
    self.shown, self.ends = 0, at + self.per
  end
  if self.shown < self.max then
    self.shown = self.shown + 1
    return true
  end
  self.more = self.more + 1
  if not self.timer then self.timer = alarm.timer(self.ends, on_alarm(self)) end
  return false
end

--- Nothing comes any more: tells what is still to be told.
function Limit:stop()
  flush(self)
end

return M
