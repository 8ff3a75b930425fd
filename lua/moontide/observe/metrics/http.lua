--- The host's own families: HTTP, as the core counts it. Without http loaded there are none.
local M = {}

-- Totals of the core, by their name there.
local TOTALS = {
  { "accepted", "moontide_http_connections_accepted_total", "Connections accepted." },
  { "refused", "moontide_http_connections_refused_total", "Connections over the limits." },
  { "parse_errors", "moontide_http_parse_errors_total", "Requests that were not HTTP." },
  { "timeouts", "moontide_http_timeouts_total", "Connections closed for a timeout." },
  { "aborted", "moontide_http_aborted_total", "Requests ended by the client or by a drain." },
  { "half_requests", "moontide_http_half_requests_total", "Connections that ended in a head." },
}

-- What drains came to, by listener; the names there.
local DRAINS = {
  { "served", "moontide_http_drain_served_total", "Answers since the move to draining." },
  { "closed_idle", "moontide_http_drain_closed_idle_total", "Idle connections closed by a drain." },
  { "drained", "moontide_http_drain_accepted_total",
    "Connections taken from the accept queue once the listener was gated." },
  { "forced", "moontide_http_drain_forced_total", "Requests that a drain ended by force." },
}

local function mirror_drains(http, families)
  for _, report in ipairs(http.drain_reports()) do
    for key, counter in next, families do
      counter:mirror(report[key], { listener = report.listener })
    end
  end
end

local function declare_work(metrics)
  local active = metrics.gauge("moontide_work_in_flight",
    "What a drain waits for: requests by listener, jobs by route.", { "kind" })
  local total = metrics.counter("moontide_work_total", "What was ever taken up of it.", { "kind" })
  metrics.on_collect(function()
    for _, kind in ipairs(require("moontide.core.work").all()) do
      active:set(kind.active, { kind = kind.name })
      total:mirror(kind.total, { kind = kind.name })
    end
  end)
end

local function mirror_totals(families, stats)
  for key, counter in next, families do counter:mirror(stats[key]) end
end

---@param metrics table the registry
function M.declare(metrics)
  local http = package.loaded["moontide.http"]
  if not http then return end
  local bounds = http.stats().bounds
  local requests = metrics.counter("moontide_http_requests_total",
    "Requests answered, by class of status; none: ended without an answer.", { "class" })
  local durations = metrics.histogram("moontide_http_request_duration_seconds",
    "From the head of a request to the end of its answer.", bounds)
  local connections = metrics.gauge("moontide_http_connections", "Open connections.", { "state" })
  local in_flight = metrics.gauge("moontide_http_requests_in_flight", "Requests being answered.")
  declare_work(metrics)
  local totals, drains = {}, {}
  for _, row in ipairs(DRAINS) do
    drains[row[1]] = metrics.counter(row[2], row[3], { "listener" })
  end
  for _, total in ipairs(TOTALS) do totals[total[1]] = metrics.counter(total[2], total[3]) end
  metrics.on_collect(function()
    local stats = http.stats()
    for class, count in next, stats.requests do requests:mirror(count, { class = class }) end
    durations:mirror(stats.buckets, stats.duration_sum)
    connections:set(stats.idle, { state = "idle" })
    connections:set(stats.upgraded, { state = "upgraded" })
    connections:set(stats.connections - stats.idle - stats.upgraded, { state = "active" })
    in_flight:set(stats.in_flight)
    mirror_totals(totals, stats)
    mirror_drains(http, drains)
  end)
end

return M
