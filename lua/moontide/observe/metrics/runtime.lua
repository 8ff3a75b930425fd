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

local function declare_lag(metrics)
  local lag = require "moontide.observe.loop_lag"
  local histogram = metrics.histogram("moontide_loop_lag_seconds",
    "How much later than due the loop came to a timer; sampled every second.", lag.bounds)
  require("moontide.background").when_ready(lag.begin)
  metrics.on_collect(function() histogram:mirror(lag.buckets, lag.sum) end)
end

---@param metrics table the registry
function M.declare(metrics)
  declare_counts(metrics)
  declare_lag(metrics)
end

return M
