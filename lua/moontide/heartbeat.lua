--- Heartbeats: a worker says that it makes progress; when it is silent for too long, the process
-- is not ready.

local background = require "moontide.background"
local core = require "moontide.core"
local fail = require("moontide.site").fail
local options = require "moontide.options"
local task = require "moontide.task"

local now = core.clock.now

local M = {}

local SPECS = { every = "duration", stale_after = "duration", critical = "boolean" }
local DEFAULTS = { every = 5, critical = true }

---@class moontide.Heartbeat
---@field name string
---@field last number when it last beat (or was made)
---@field due number when it is stale
---@field stale boolean
local Heartbeat = {}
Heartbeat.__index = Heartbeat

local heartbeats = {}

local function publish(self, detail)
  local extra = detail ~= nil and require("moontide.readiness").members { detail = detail } or nil
  core.health.set("worker:" .. self.name, true, self.opts.critical, extra, self.due)
end

local function recovered(self)
  self.stale = false
  core.log.write(1, "readiness", "worker.recovered", "worker", self.name)
  if self.waiter then self.waiter:wake() end
end

--- Progress was made.
---@param detail any shown in the readiness body
function Heartbeat:beat(detail)
  self.last = now()
  self.due = self.last + self.opts.stale_after
  if self.stale then recovered(self) end
  if self.begun then publish(self, detail) end
end

--- Declares a long step: until it is over (or the next beat), silence is in order.
---@param d number|string
function Heartbeat:busy(d)
  local seconds, message = require("moontide.duration").parse(d,
    ("heartbeat %q: busy"):format(self.name))
  if not seconds then fail(message) end
  self.due = math.max(now() + seconds, self.last + self.opts.stale_after)
  if self.stale then recovered(self) end
  if self.begun then publish(self) end
end

--- Seconds since the last beat.
function Heartbeat:age()
  return now() - self.last
end

-- Waits for silence, says so once, then for the next beat.
local function watch(self)
  while not self.over do
    local left = self.due - now()
    if left > 0 then -- a beat after a long step makes it due earlier than it was
      task.sleep(math.min(left, self.opts.stale_after))
    else
      self.stale = true
      self.waiter = task.waiter("beat of " .. self.name)
      core.log.write(2, "readiness", "worker.stale", "worker", self.name, "age_seconds",
        self:age(), "stale_after", self.opts.stale_after)
      self.waiter:wait()
    end
  end
end

-- The time before the service is ready is not the worker's.
local function begin(self)
  if self.over then return end
  self.begun = true
  self.last = now()
  self.due = math.max(self.due, self.last + self.opts.stale_after)
  publish(self)
  self.task = background.start("heartbeat " .. self.name, "heartbeat", watch, self)
end

--- Ends it; silence no longer counts.
function Heartbeat:stop()
  self.over = true
  heartbeats[self.name] = nil
  if self.task then self.task:cancel("the heartbeat has ended") end
  core.health.remove("worker:" .. self.name)
end

--- Declares a heartbeat.
---@param name string
---@param opts { every: number|string, stale_after: number|string, critical: boolean }|nil
---@return moontide.Heartbeat
function M.new(name, opts)
  options.name("heartbeat", name)
  local what = ("heartbeat %q"):format(name)
  local checked = options.check(what, opts, SPECS, DEFAULTS)
  checked.stale_after = checked.stale_after or 4 * checked.every
  if checked.stale_after < checked.every then
    fail(what .. ": stale_after is below every, so it would always be stale")
  end
  if heartbeats[name] then fail(what .. " exists already") end
  local self = setmetatable({
    name = name, opts = checked, last = now(), due = now() + checked.stale_after, stale = false,
  }, Heartbeat)
  heartbeats[name] = self
  background.when_ready(function() begin(self) end)
  return self
end

--- The heartbeats by name, for the metrics.
function M.all()
  return heartbeats
end

return M
