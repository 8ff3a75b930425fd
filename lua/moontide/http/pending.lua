--- What is under way beside requests, by id: jobs, handlers whose client has left. The shutdown
--- waits for it with the requests, in the same time.

local config = require "moontide.config"
local core = require "moontide.core"
local work = require "moontide.core.work"
local task = require "moontide.task"

---@class moontide.Pending
---@field items table<string, table>
---@field n integer
---@field source moontide.core.work.source where the process counts what is in flight
local Pending = {}
Pending.__index = Pending

local M = {}

---@param name string for the shutdown's records: "jobs:api POST /export"
---@return moontide.Pending
function M.new(name)
  return setmetatable({ name = name, items = {}, n = 0, source = work.source(name) }, Pending)
end

--- Something begins that a shutdown is to wait for.
---@param id string
---@param item table
function Pending:add(id, item)
  self.items[id] = item
  self.n = self.n + 1
  self.source:begin()
end

--- It is over; again harmless.
---@param id string
function Pending:remove(id)
  if self.items[id] == nil then return end
  self.items[id] = nil
  self.n = self.n - 1
  self.source:done()
  if self.n == 0 and self.empty then self.empty:set(true) end
end

--- Waits until nothing is under way.
---@async
function Pending:wait()
  while self.n > 0 do
    self.empty = task.event(self.name)
    self.empty:wait()
  end
end

local function drain(self, late)
  local ok = pcall(task.timeout, config.get("shutdown.drain"), self.wait, self)
  if ok then return end
  core.log.write(2, "http", "the drain ended what was under way", "of", self.name, "ended", self.n)
  late()
  -- Also when the phase is over: what was interrupted has this long to be recorded.
  local seconds = config.get("timeouts.force_flush")
  task.shield(seconds + 0.1, function() pcall(task.timeout, seconds, self.wait, self) end)
  if self.n > 0 then
    core.log.write(3, "http", "what was under way is not recorded", "of", self.name, "count",
      self.n)
  end
  task.sleep(0) -- raises if the phase has ended
end

--- Lets the shutdown wait.
---@param begin fun() the waiting begins: nothing new, please
---@param late fun() the time is over
function Pending:drain_with_requests(begin, late)
  require("moontide.shutdown"):builtin_task("service-requests-done", self.name, function()
    begin()
    drain(self, late)
  end, { detail = function() return ("%s, %d under way"):format(self.name, self.n) end })
end

return M
