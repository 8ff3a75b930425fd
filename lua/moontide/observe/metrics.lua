--- Counters, gauges and histograms, for Prometheus to read at /metrics.
---
---   local orders = tide.metrics.counter("orders_total", "Orders taken.", { "shop" })
---   orders:inc(1, { shop = "north" })
---
--- A family has at most 1000 series: what would make more is left out and counted in
--- `moontide_metrics_dropped_total`, so that a label with endless values does not eat the memory.
local core = require "moontide.core"
local families = require "moontide.observe.metrics.family"

local M = {}

local by_name = {}
local collectors = {}

-- Registers a family, or finds the same one: a module may be loaded again.
local function register(kind, name, help, labels, buckets)
  local made = families.new(kind, name, help, labels, buckets, 3)
  local known = by_name[name]
  if not known then
    by_name[name] = made
    return made
  end
  if known:signature() ~= made:signature() then
    error(("metrics: %s is registered already, as a %s"):format(name, known:signature()), 2)
  end
  return known
end

--- A value that only grows. Its name ends in _total.
---@param name string
---@param help string
---@param labels? string[] names of the labels
---@return moontide.Counter
function M.counter(name, help, labels)
  return register("counter", name, help, labels)
end

--- A value that goes up and down.
---@param name string
---@param help string
---@param labels? string[]
---@return moontide.Gauge
function M.gauge(name, help, labels)
  return register("gauge", name, help, labels)
end

--- How observed values are distributed. Base units: seconds, bytes.
---@param name string
---@param help string
---@param buckets? number[] upper bounds, growing; default: 5 ms to 10 s
---@param labels? string[]
---@return moontide.Histogram
function M.histogram(name, help, buckets, labels)
  return register("histogram", name, help, labels, buckets)
end

--- Calls `fn` before each rendering, to set gauges from what it looks up. It must not await.
---@param fn fun()
function M.on_collect(fn)
  collectors[#collectors + 1] = fn
end

-- One that fails must not cost the others.
local function run_collectors()
  for _, fn in ipairs(collectors) do
    local ok, err = xpcall(fn, debug.traceback)
    if not ok then core.log.write(2, "metrics", "a collector failed: " .. tostring(err)) end
  end
end

local function sorted()
  local list = {}
  for _, family in next, by_name do list[#list + 1] = family end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

--- What the families had to leave out, as a family.
local function dropped(list)
  local family = families.new("counter", "moontide_metrics_dropped_total",
    "Updates left out because their family has 1000 series.", { "family" })
  for _, other in ipairs(list) do
    if other.dropped > 0 then family:inc(other.dropped, { family = other.name }) end
  end
  return family
end

--- The text of all families, in the format that the Accept header prefers.
---@param accept? string
---@return string text
---@return string content_type
function M.render(accept)
  local exposition = require "moontide.observe.metrics.exposition"
  run_collectors()
  local list = sorted()
  list[#list + 1] = dropped(list)
  return exposition.render(list, exposition.wants_open_metrics(accept))
end

-- The host's own families; loaded by the first who asks.
local HOST = { "lifecycle", "workers", "runtime", "http", "process" }
local host_declared = false

--- What /metrics answers: the script's families and the host's own.
---@param accept? string
---@return string text
---@return string content_type
function M.collect(accept)
  if not host_declared then
    host_declared = true
    for _, name in ipairs(HOST) do require("moontide.observe.metrics." .. name).declare(M) end
  end
  return M.render(accept)
end

--- Forgets everything (tests).
function M.reset()
  by_name, collectors, host_declared = {}, {}, false
end

return M
