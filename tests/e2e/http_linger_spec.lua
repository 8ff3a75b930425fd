-- The linger: not ready any more, all is served, and who is served is told to go.
local http = require "support.http_client"
local http_app = require "support.http_app"
local loop = require "support.loop"
local proc = require "support.process"

local function connect_every_10_ms(app, seconds)
  local till = loop.now() + seconds
  local statuses, closes = {}, 0
  while loop.now() < till do
    local response, err = http.get(app.port, "/hello")
    local key = response and response.status or err
    statuses[key] = (statuses[key] or 0) + 1
    if response and response.headers.connection == "close" then closes = closes + 1 end
    loop.turn_for(0.01)
  end
  return statuses, closes
end

describe("the linger", function()
  it("serves each new connection until its end, and says close", function()
    local app = http_app.start { linger = "1s" }
    app:signal "TERM"
    app:wait_log { to = "draining" }
    local statuses, closes = connect_every_10_ms(app, 0.8)
    assert.is_true(statuses[200] > 20)
    assert.same({ [200] = closes }, statuses)
    assert.equal(0, (app:wait()))
  end)

  it("turns readiness within 50 ms, and leaves liveness alone", function()
    local app = http_app.start { linger = "1s" }
    local ready = assert(http.connect(app.manage_port))
    assert.equal(200, ready:request("GET", "/health/ready").status)
    app:signal "TERM"
    loop.turn_for(0.05)
    assert.equal(503, ready:request("GET", "/health/ready").status)
    for _ = 1, 10 do
      local live = http.get(app.manage_port, "/health/live")
      assert.same({ 200, "close" }, { live.status, live.headers.connection })
      local response = http.get(app.manage_port, "/health/ready")
      assert.same({ 503, "close" }, { response.status, response.headers.connection })
      loop.turn_for(0.05)
    end
  end)

  it("is kept by a listener that a phase of the startup declares", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.config { shutdown = { linger = "600ms" } }
      tide.startup:phase("late", {}, function()
        local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
        server:get("/hello", function() return "hello" end)
      end)
    ]] }
    app:wait_ready()
    app:signal "TERM"
    app:wait_log { to = "draining" }
    assert.equal(200, http.get(app.port, "/hello").status)
    assert.equal(0, (app:wait()))
    assert.is_true(app:seconds_to_end() >= 0.6)
  end)
end)

describe("an adaptive linger", function()
  local function seconds(linger, listen, before)
    local app = http_app.start { linger = linger, listen = listen }
    local conn = before and before(app)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    return app:seconds_to_end(), conn
  end

  it("ends when nobody is left to tell", function()
    -- 1 s of quiet since the last client; the rest is a bound for a busy machine
    assert.is_true(seconds("5s", "linger_adaptive = true", function(app)
      assert(http.get(app.port, "/hello"))
    end) < 3)
  end)

  it("goes on while a connection waits for its next request", function()
    -- Twice as long as one that ends early takes.
    local took = seconds("2s", "linger_adaptive = true", function(app)
      local conn = assert(http.connect(app.port))
      assert(conn:request("GET", "/hello"))
      return conn
    end)
    assert.is_true(took >= 2)
  end)

  it("needs to be asked for", function()
    assert.is_true(seconds("2s") >= 2)
  end)
end)
