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
  local totals = {}
  for _, total in ipairs(TOTALS) do totals[total[1]] = metrics.counter(total[2], total[3]) end
  metrics.on_collect(function()
    local stats = http.stats()
    for class, count in next, stats.requests do requests:mirror(count, { class = class }) end
    durations:mirror(stats.buckets, stats.duration_sum)
    connections:set(stats.idle, { state = "idle" })
    connections:set(stats.connections - stats.idle, { state = "active" })
    in_flight:set(stats.in_flight)
    mirror_totals(totals, stats)
  end)
end

return M
