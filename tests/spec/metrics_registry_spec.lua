-- What a family takes and what it refuses.
describe("metrics", function()
  local metrics

  before_each(function()
    package.loaded["moontide.core"] = { log = { write = function() end } }
    package.loaded["moontide.observe.metrics"] = nil
    metrics = require "moontide.observe.metrics"
  end)

  after_each(function()
    package.loaded["moontide.core"] = nil
    package.loaded["moontide.observe.metrics"] = nil
  end)

  local function refused(message, fn)
    local ok, err = pcall(fn)
    assert.is_false(ok)
    assert.equal("metrics: " .. message, (err:gsub("^.-:%d+: ", "")))
    assert.matches("^[^:]*metrics_registry_spec%.lua:", err) -- the caller's line
  end

  it("keeps at most 1000 series a family and says what it left out", function()
    local counter = metrics.counter("c_total", "C.", { "id" })
    for i = 1, 1500 do counter:inc(1, { id = i }) end
    counter:inc(1, { id = 1 })
    local text = metrics.render()
    local _, lines = text:gsub("\nc_total{", "")
    assert.equal(1000, lines)
    assert.matches('c_total{id="1"} 2\n', text)
    assert.matches('moontide_metrics_dropped_total{family="c_total"} 500\n', text)
  end)

  it("counts a histogram's lines as series", function()
    local histogram = metrics.histogram("h", "H.", { 1, 2, 3 }, { "id" })
    for i = 1, 1000 do histogram:observe(1, { id = i }) end
    local _, lines = metrics.render():gsub("\nh_", "")
    assert.is_true(lines <= 1000 and lines > 990)
  end)

  it("frees the room of a series that is removed", function()
    local gauge = metrics.gauge("g", "G.", { "id" })
    for i = 1, 1000 do gauge:set(i, { id = i }) end
    gauge:remove { id = 7 }
    gauge:remove { id = 7 }
    gauge:set(1, { id = "new" })
    assert.matches('g{id="new"} 1\n', (metrics.render()))
    gauge:clear()
    assert.equal("", (metrics.render()))
  end)

  it("goes up and down", function()
    local gauge = metrics.gauge("g", "G.")
    gauge:inc()
    gauge:inc(5)
    gauge:dec(2)
    gauge:dec()
    assert.matches("g 3\n", (metrics.render()))
  end)

  it("finds a family that is registered again", function()
    local first = metrics.counter("c_total", "C.", { "b", "a" })
    assert.equal(first, metrics.counter("c_total", "C again.", { "a", "b" }))
    refused("c_total is registered already, as a counter (a, b)", function()
      local _ = metrics.counter("c_total", "C.", { "a" })
    end)
    refused("c_total is registered already, as a counter (a, b)", function()
      local _ = metrics.gauge("c_total", "C.", { "a", "b" })
    end)
  end)

  it("refuses wrong names", function()
    refused('"a b" is no metric name', function() local _ = metrics.gauge("a b", "H.") end)
    refused('"nil" is no metric name', function() local _ = metrics.gauge(nil, "H.") end)
    refused("the name of a counter ends in _total: orders_total",
      function() local _ = metrics.counter("orders", "H.") end)
    refused("g needs a help text", function() local _ = metrics.gauge("g") end)
    for _, label in ipairs { "a-b", "__x", "le", "" } do
      refused(("g: %q is no label name"):format(label),
        function() local _ = metrics.gauge("g", "H.", { label }) end)
    end
    refused('g: the label "a" comes twice',
      function() local _ = metrics.gauge("g", "H.", { "a", "a" }) end)
  end)

  it("refuses buckets out of order", function()
    for _, buckets in ipairs { { 2, 1 }, { 1, 1 }, { "x" }, { 0 / 0 } } do
      refused("h: the buckets are numbers, each above the one before",
        function() local _ = metrics.histogram("h", "H.", buckets) end)
    end
  end)

  it("refuses labels that the family has not", function()
    local counter = metrics.counter("c_total", "C.", { "a" })
    refused('c_total needs the label "a"', function() counter:inc() end)
    refused('c_total needs the label "a"', function() counter:inc(1, { b = 1 }) end)
    refused('c_total has no label "b"', function() counter:inc(1, { a = 1, b = 1 }) end)
    refused("the labels of c_total are a table, not a string", function() counter:inc(1, "x") end)
    refused('c_total has no label "b"', function() counter:remove { a = 1, b = 1 } end)
  end)

  it("refuses values that make no sense", function()
    local counter = metrics.counter("c_total", "C.")
    refused("c_total is a counter and can only grow, not by -1", function() counter:inc(-1) end)
    refused("c_total is a counter and can only grow, not by inf",
      function() counter:inc(1 / 0) end)
    refused("c_total:inc wants a number, not a string", function() counter:inc("1") end)
    refused("g:set wants a number, not a nil",
      function() metrics.gauge("g", "G."):set(nil) end)
    refused("h:observe wants no NaN", function()
      metrics.histogram("h", "H."):observe(0 / 0)
    end)
  end)
end)
