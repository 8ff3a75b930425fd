-- What /metrics says, in both formats; the text is also shown to promtool.
describe("metrics as text", function()
  local metrics, warnings

  before_each(function()
    warnings = {}
    package.loaded["moontide.core"] = {
      log = { write = function(_, _, message) warnings[#warnings + 1] = message end },
    }
    package.loaded["moontide.observe.metrics"] = nil
    metrics = require "moontide.observe.metrics"
  end)

  after_each(function()
    package.loaded["moontide.core"] = nil
    package.loaded["moontide.observe.metrics"] = nil
  end)

  it("has HELP and TYPE once, families and series and labels sorted", function()
    local requests = metrics.counter("http_requests_total", "Requests.", { "route", "code" })
    requests:inc(1, { route = "/b", code = 200 })
    requests:inc(2, { code = 404, route = "/a" })
    requests:inc(nil, { route = "/b", code = 200 })
    metrics.gauge("a_seconds", "First."):set(0.25)
    assert.equal([[
# HELP a_seconds First.
# TYPE a_seconds gauge
a_seconds 0.25
# HELP http_requests_total Requests.
# TYPE http_requests_total counter
http_requests_total{code="200",route="/b"} 2
http_requests_total{code="404",route="/a"} 2
]], (metrics.render()))
  end)

  it("escapes label values and help", function()
    local gauge = metrics.gauge("g", 'A "back\\slash"\nand a line.', { "path" })
    gauge:set(1, { path = 'C:\\new\n"x"' })
    gauge:set(2, { path = "\xff" })
    assert.equal([[
# HELP g A "back\\slash"\nand a line.
# TYPE g gauge
g{path="C:\\new\n\"x\""} 1
g{path="]] .. "\u{FFFD}" .. [["} 2
]], (metrics.render()))
    assert.matches('# HELP g A \\"back\\\\slash\\"\\nand a line.',
      (metrics.render "application/openmetrics-text"), 1, true)
  end)

  it("spells the numbers as Prometheus reads them", function()
    local gauge = metrics.gauge("g", "G.", { "n" })
    local given = { 0 / 0, -(0 / 0), 1 / 0, -1 / 0, 3, 3.0, 0.1, 1e300, math.maxinteger }
    for i, value in ipairs(given) do gauge:set(value, { n = i }) end
    local values = {}
    for value in metrics.render():gmatch("} (%S+)\n") do values[#values + 1] = value end
    assert.same({ "NaN", "NaN", "+Inf", "-Inf", "3", "3", "0.1", "1e+300", "9223372036854775807" },
      values)
  end)

  it("makes histograms cumulative, with le in its place", function()
    local histogram = metrics.histogram("h_seconds", "H.", { 0.1, 1 }, { "a", "z" })
    for _, value in ipairs { 0.05, 0.1, 0.5, 7 } do histogram:observe(value, { a = 1, z = 2 }) end
    assert.equal([[
# HELP h_seconds H.
# TYPE h_seconds histogram
h_seconds_bucket{a="1",le="0.1",z="2"} 2
h_seconds_bucket{a="1",le="1",z="2"} 3
h_seconds_bucket{a="1",le="+Inf",z="2"} 4
h_seconds_sum{a="1",z="2"} 7.65
h_seconds_count{a="1",z="2"} 4
]], (metrics.render()))
  end)

  it("speaks OpenMetrics to those who prefer it", function()
    metrics.counter("c_total", "C."):inc(3)
    metrics.histogram("h", "H.", { 1 }):observe(2)
    local text, kind = metrics.render(
      "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2")
    assert.equal("application/openmetrics-text; version=1.0.0; charset=utf-8", kind)
    assert.equal([[
# HELP c C.
# TYPE c counter
c_total 3
# HELP h H.
# TYPE h histogram
h_bucket{le="1.0"} 0
h_bucket{le="+Inf"} 1
h_sum 2
h_count 1
# EOF
]], text)
  end)

  it("speaks the old format to everybody else", function()
    for _, accept in ipairs {
      "", "*/*", "text/html", "text/plain, application/openmetrics-text;q=0.9", "nonsense;;q=x,",
      "application/openmetrics-text;q=0", "application/openmetrics-text;version=2.0.0",
    } do
      local _, kind = metrics.render(accept)
      assert.equal("text/plain; version=0.0.4; charset=utf-8", kind, accept)
    end
  end)

  it("asks the collectors first, and survives one that fails", function()
    local gauge = metrics.gauge("g", "G.")
    metrics.on_collect(function() error("no luck") end)
    metrics.on_collect(function() gauge:set(7) end)
    assert.matches("g 7\n", (metrics.render()))
    assert.equal(1, #warnings)
    assert.matches("a collector failed: .*no luck", warnings[1])
  end)

  it("leaves out families without series, and begins at 0 without labels", function()
    metrics.gauge("g", "G.", { "a" })
    assert.equal("", (metrics.render()))
    metrics.counter("c_total", "C.")
    assert.equal("# HELP c_total C.\n# TYPE c_total counter\nc_total 0\n", (metrics.render()))
  end)

  it("satisfies promtool", function()
    if not os.execute("command -v promtool >/dev/null") then
      return pending("promtool (package prometheus) is not installed")
    end
    metrics.counter("orders_total", 'Orders, "all"\nof them.', { "shop" })
      :inc(2, { shop = 'a"b\\' })
    metrics.gauge("queue_depth", "Depth."):set(-(0 / 0))
    metrics.histogram("request_duration_seconds", "Durations.", nil, { "route" })
      :observe(0.3, { route = "/" })
    local path = os.tmpname()
    finally(function() os.remove(path) end)
    local file = assert(io.open(path, "w"))
    file:write((metrics.render()))
    file:close()
    local check = assert(io.popen(("promtool check metrics <%s 2>&1; echo $?"):format(path)))
    local said = check:read("a")
    check:close()
    assert.equal("0\n", said)
  end)
end)
