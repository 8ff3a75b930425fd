-- What a drain says of itself: at its begin, at its end, in the exit report and in
-- the metrics.
local http = require "support.http_client"
local http_app = require "support.http_app"
local json = require "moontide.json"
local loop = require "support.loop"
local proc = require "support.process"
local uv = require "luv"

local function report_of(app)
  local dir = app.dir .. "/state/reports"
  local name = assert(uv.fs_scandir_next(assert(uv.fs_scandir(dir))))
  return assert(json.decode(proc.read_file(dir .. "/" .. name)))
end

describe("a drain", function()
  it("counts at its begin what is in flight, idle, and new", function()
    local app = http_app.start { linger = "300ms" }
    local conns = {}
    for i = 1, 6 do conns[i] = assert(http.connect(app.port)) end
    conns[1]:send_request("GET", "/slow?ms=500")
    for i = 2, 3 do assert(conns[i]:request("GET", "/hello")) end
    -- accepted, though it said nothing: the answer behind it has come
    assert.equal("hello", http.get(app.port, "/hello").body)
    app:signal "TERM"
    local record = app:wait_log { component = "http", msg = "draining" }
    assert.same({ 1, 2, 3, 0 },
      { record.in_flight, record.idle, record.new, record.upgraded })
    assert.equal(200, assert(conns[1]:read_response()).status)
    assert.equal(0, (app:wait()))
  end)

  it("tells probes how far it is", function()
    local app = http_app.start { linger = "500ms" }
    local slow = assert(http.connect(app.port))
    slow:send_request("GET", "/slow?ms=1500")
    local function phase()
      local response = http.get(app.manage_port, "/health/ready")
      return response.status .. " " .. tostring(json.decode(response.body).phase)
    end
    assert.equal("200 nil", phase())
    app:signal "TERM"
    app:wait_log { to = "draining" }
    assert.equal("503 linger", phase())
    app:wait_log { msg = "listener closed" }
    loop.turn_for(0.1) -- what is 20 ms beside a long unbind
    assert.equal("503 drain", phase())
    assert.equal(200, assert(slow:read_response()).status)
    assert.equal(0, (app:wait()))
  end)

  it("says at its end what it came to", function()
    local app = http_app.start { linger = "500ms", drain = "400ms" }
    local idle, slow, told = {}, {}, assert(http.connect(app.port))
    for i = 1, 5 do
      idle[i] = assert(http.connect(app.port))
      assert(idle[i]:request("GET", "/hello"))
    end
    for i = 1, 2 do
      slow[i] = assert(http.connect(app.port))
      slow[i]:send_request("GET", "/slow?ms=60000&id=" .. i)
    end
    app:signal "TERM"
    app:wait_log { to = "draining" }
    assert(told:request("GET", "/hello"))
    assert.equal(503, assert(slow[1]:read_response()).status)
    assert.equal(0, (app:wait()))

    local record = app:wait_log { msg = "drained" }
    assert.same({ "api", 5, 2 }, { record.listener, record.closed_idle, record.forced })
    assert.equal(3, record.served) -- told, and two 503s
    local forced = app:find_logs { msg = "request aborted" }
    assert.equal(2, #forced)
    assert.same({ "GET", "/slow", 0, "drain timeout" },
      { forced[1].method, forced[1].path, forced[1].bytes, forced[1].reason })
    assert.is_true(forced[1].age_ms >= 800) -- linger and drain

    local drains = report_of(app).drains
    assert.equal(1, #drains)
    assert.same({ "api", 3, 5, 0, 2 }, { drains[1].listener, drains[1].served,
      drains[1].closed_idle, drains[1].drained, drains[1].forced })
    assert.equal(2, #drains[1].requests)
    local first = drains[1].requests[1]
    assert.same({ "GET", "/slow", 0 }, { first.method, first.path, first.bytes })
    assert.is_true(first.age > 0.8)
  end)

  it("has its counts in the metrics while it goes on", function()
    local app = http_app.start { linger = "0s" }
    local idle, slow = assert(http.connect(app.port)), assert(http.connect(app.port))
    assert(idle:request("GET", "/hello"))
    slow:send_request("GET", "/slow?ms=1500")
    app:signal "TERM"
    assert.equal("eof", idle:wait_close())
    local text
    loop.wait(function()
      text = http.get(app.manage_port, "/metrics").body
      return text:find('drain_closed_idle_total{listener="api"} 1\n', 1, true)
    end, 5, "the metric")
    for _, name in ipairs { "served", "accepted", "forced" } do
      local line = ('\nmoontide_http_drain_%s_total{listener="api"} 0\n'):format(name)
      assert.is_truthy(text:find(line, 1, true), name)
    end
    assert.equal(200, assert(slow:read_response()).status)
  end)

  it("takes a short list for none, and none for no report", function()
    local app = http_app.start { linger = "0s" }
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    local drains = report_of(app).drains
    assert.same({ 0, 0, 0 }, { drains[1].served, drains[1].closed_idle, #drains[1].requests })

    local code, _, _, process = proc.run { script = "require('moontide')\n" }
    assert.equal(0, code)
    assert.is_nil(report_of(process).drains)
  end)
end)
