--- The host's own families: tasks, uncaught errors, the log, memory, and how late the loop is.
local core = require "moontide.core"

local M = {}

local function declare_counts(metrics)
  local tasks = metrics.gauge("moontide_tasks", "Tasks that live, by what they do.", { "state" })
  local uncaught = metrics.counter("moontide_uncaught_errors_total",
    "Errors that nobody caught.", { "kind" })
  local dropped = metrics.counter("moontide_log_dropped_total",
    "Log records dropped because their reader was too slow.")
  local memory = metrics.gauge("moontide_lua_memory_bytes", "Memory that Lua uses.")
  metrics.on_collect(function()
    local counts = require("moontide.task").counts()
    tasks:set(counts.ready, { state = "ready" })
    tasks:set(counts.waiting, { state = "waiting" })
    for kind, count in next, require("moontide.uncaught").counts do
      uncaught:mirror(count, { kind = kind })
    end
    dropped:mirror(core.log.dropped())
    memory:set(math.floor(collectgarbage("count") * 1024))
  end)
end

--- Seconds between two looks at the loop. It is only looked at once somebody reads metrics.
local LAG_PERIOD = 1

local function watch_lag(histogram)
  local task, now = require "moontide.task", core.clock.now
  while true do
    local due = now() + LAG_PERIOD
    task.sleep(LAG_PERIOD)
    histogram:observe(math.max(0, now() - due))
  end
end

local function declare_lag(metrics)
  local lag = metrics.histogram("moontide_loop_lag_seconds",
    "How much later than due the loop came to a timer; sampled every second.",
    { 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 5 })
  local background = require "moontide.background"
  background.when_ready(function()
    background.start("metrics: loop lag", "internal", watch_lag, lag)
  end)
end

---@param metrics table the registry
function M.declare(metrics)
  declare_counts(metrics)
  declare_lag(metrics)
end

return M
