-- What /metrics of a running process says.
local http = require "support.http_client"
local proc = require "support.process"

local APP = [[
  local tide = require "moontide"
  tide.startup:phase("db", {}, function() end)
  tide.check("db", {}, function() return true end)
  tide.worker("outbox", { every = "20ms" }, function() end)
  tide.metrics.counter("orders_total", "Orders.", { "shop" }):inc(3, { shop = "a \"b\"\n" })
  tide.http.listen { port = tonumber(os.getenv "PORT") }
]]

local function scrape(process, accept)
  return assert(http.get(process.manage_port, "/metrics", {
    headers = accept and { Accept = accept } or nil,
  }))
end

describe("/metrics", function()
  it("has the host's families and the script's", function()
    local process = proc.start { script = APP }
    process:wait_ready()
    http.get(process.port, "/")
    local response = scrape(process)
    assert.equal(200, response.status)
    assert.equal("text/plain; version=0.0.4; charset=utf-8", response.headers["content-type"])
    local text = "\n" .. response.body
    for _, expected in ipairs {
      'moontide_lifecycle_state{state="ready"} 1', 'moontide_lifecycle_state{state="draining"} 0',
      'orders_total{shop="a \\"b\\"\\n"} 3', "moontide_log_dropped_total 0",
      'moontide_http_requests_total{class="4xx"} 1', 'moontide_check_ok{check="db"} 1',
      'moontide_worker_stale{worker="outbox"} 0',
    } do
      assert.is_truthy(text:find("\n" .. expected .. "\n", 1, true), expected .. " not in" .. text)
    end
    for _, family in ipairs {
      'moontide_startup_phase_duration_seconds{phase="db"}', "process_open_fds",
      'moontide_worker_heartbeat_age_seconds{worker="outbox"}', "moontide_loop_lag_seconds_count",
      'moontide_tasks{state="waiting"}', "moontide_lua_memory_bytes",
    } do
      assert.is_truthy(text:find("\n" .. family .. " ", 1, true), family)
    end
    assert.equal("\n", text:sub(-1))
    assert.is_nil(text:find("\r"))
    assert.is_nil(text:find("%-nan"))
  end)

  it("satisfies promtool", function()
    if not os.execute("command -v promtool >/dev/null") then
      return pending("promtool (package prometheus) is not installed")
    end
    local process = proc.start { script = APP }
    process:wait_ready()
    local path = process.dir .. "/metrics"
    proc.write_file(path, scrape(process).body)
    local code, out, err = proc.run {
      program = "/bin/sh", argv = { "-c", "promtool check metrics <" .. path },
    }
    assert.equal(0, code, out .. err)
    assert.equal("", out .. err)
  end)

  it("speaks OpenMetrics to those who ask", function()
    local process = proc.start { script = APP }
    process:wait_ready()
    local response = scrape(process, "application/openmetrics-text;version=1.0.0")
    assert.equal("application/openmetrics-text; version=1.0.0; charset=utf-8",
      response.headers["content-type"])
    assert.matches("\n# EOF\n$", response.body)
  end)
end)
