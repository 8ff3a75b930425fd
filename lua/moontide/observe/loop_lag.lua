--- How late the loop is: a timer every second, and how much later than due it came. Nothing looks
--- before somebody asks, for metrics or at the console; then it goes on.
local core = require "moontide.core"
local task = require "moontide.task"

local now = core.clock.now

local M = {
  --- Seconds between two looks.
  PERIOD = 1,
  --- Upper bounds of the buckets, in seconds; the last bucket has none.
  bounds = { 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 5 },
  --- How many looks came to what, not cumulated.
  ---@type integer[]
  buckets = {},
  count = 0, sum = 0, max = 0,
  ---@type number|nil of the latest look
  last = nil,
  ---@type number|nil since when, on the clock's scale
  since = nil,
}

for i = 1, #M.bounds + 1 do M.buckets[i] = 0 end

local function note(lag)
  local i = 1
  while M.bounds[i] and lag > M.bounds[i] do i = i + 1 end
  M.buckets[i] = M.buckets[i] + 1
  M.count, M.sum, M.last = M.count + 1, M.sum + lag, lag
  if lag > M.max then M.max = lag end
end

--- Waits once, and says how much too late that was over.
---@async
---@param seconds number
---@return number seconds
function M.measure(seconds)
  local due = now() + seconds
  task.sleep(seconds)
  return math.max(0, now() - due)
end

local function watch()
  while true do note(M.measure(M.PERIOD)) end
end

--- Looks from now on; again harmless.
function M.begin()
  if M.since then return end
  M.since = now()
  require("moontide.background").start("loop lag", "internal", watch)
end

return M
