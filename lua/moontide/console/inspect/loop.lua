--- `loop()`: how late the event loop is: a few looks now, and one a second since somebody first
--- asked.
local arguments = require "moontide.console.inspect.arguments"
local json = require "moontide.json"
local lag = require "moontide.observe.loop_lag"
local core = require "moontide.core"
local view = require "moontide.view"

local M = {}

--- Looks that are made now, and seconds that each waits.
local LOOKS, EACH = 5, 0.01
local BAR = 30

local function look_now()
  local worst, sum = 0, 0
  for _ = 1, LOOKS do
    local late = lag.measure(EACH)
    worst, sum = math.max(worst, late), sum + late
  end
  return { looks = LOOKS, mean = sum / LOOKS, max = worst }
end

local function render(data)
  local rows, most = {}, 1
  for _, bucket in ipairs(data.buckets) do most = math.max(most, bucket.count) end
  for i, bucket in ipairs(data.buckets) do
    rows[i] = {
      bucket.below and "up to " .. view.time(bucket.below) or "more", bucket.count,
      ("#"):rep(math.ceil(bucket.count / most * BAR)),
    }
  end
  return view.lines(
    ("now: %.2f ms late on average of %d looks, at most %.2f ms"):format(data.now.mean * 1000,
      data.now.looks, data.now.max * 1000),
    ("one look a second, for %s: %d, at most %s late"):format(view.time(data.since), data.count,
      view.time(data.max)),
    data.count > 0 and view.columns({ "late", ">looks", "" }, rows)
      or "ask again for their histogram")
end

--- How late the loop comes to its timers.
---@async
---@return { now: table, since: number, count: integer, mean: number|nil, max: number,
--- buckets: table[] }
function M.loop(...)
  arguments.none("loop", ...)
  lag.begin()
  local present, buckets = look_now(), json.array {}
  for i, count in ipairs(lag.buckets) do buckets[i] = { below = lag.bounds[i], count = count } end
  return view.new({
    now = present, since = core.clock.now() - lag.since, count = lag.count, max = lag.max,
    mean = lag.count > 0 and lag.sum / lag.count or nil, last = lag.last, buckets = buckets,
  }, render)
end

return M
