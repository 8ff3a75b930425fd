-- What asks for nothing holds nothing up, and what never ends is ended by force.
local http = require "support.http_client"
local http_app = require "support.http_app"
local loop = require "support.loop"

describe("the exit", function()
  it("is not held by idle connections", function()
    local app = http_app.start { linger = "0s" }
    local conns = {}
    for i = 1, 100 do
      conns[i] = assert(http.connect(app.port))
      assert.equal(200, conns[i]:request("GET", "/hello").status)
    end
    app:signal "TERM"
    for i = 1, 100 do assert.equal("eof", conns[i]:wait_close()) end
    assert.equal(0, (app:wait()))
    assert.is_true(app:seconds_to_end() < 1)
  end)

  it("waits for a connection that never spoke only while it is young", function()
    local app = http_app.start { linger = "0s" }
    local conn = assert(http.connect(app.port))
    app:signal "TERM"
    assert.equal("eof", conn:wait_close())
    assert.equal(0, (app:wait()))
    -- young is below 1 s
    assert.is_true(app:seconds_to_end() < 2)
  end)

  it("is not held by a silent connection that is older than that", function()
    local app = http_app.start { linger = "1200ms" }
    local conn = assert(http.connect(app.port))
    app:signal "TERM"
    assert.equal("eof", conn:wait_close())
    assert.equal(0, (app:wait()))
    assert.is_true(app:seconds_to_end() < 1.9) -- linger, and a bound for a busy machine
  end)

  it("follows the last answer at once, though its ACK is late", function()
    local best, tries = math.huge, 0
    while best >= 0.03 and tries < 15 do
      tries = tries + 1
      local app = http_app.start { linger = "0s" }
      local conn = assert(http.connect(app.port))
      conn:send_request("GET", "/slow?ms=100")
      app:signal "TERM"
      assert.equal(200, assert(conn:read_response()).status)
      local answered = loop.now()
      assert.equal(0, (app:wait()))
      best = math.min(best, app.exited_at - answered)
    end
    -- a delayed ACK takes 40 ms, always; the best of some, for a busy machine and sanitizers
    assert.is_true(best < 0.03, ("%.1f ms"):format(best * 1000))
  end)

  it("is not held by a client that has vanished from a handler", function()
    local app = http_app.start { linger = "0s" }
    local conn = assert(http.connect(app.port))
    conn:send_request("GET", "/slow?ms=30000")
    conn:reset()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.is_true(app:seconds_to_end() < 4) -- the handler is cancelled with the root scope
  end)
end)

describe("a drain that takes too long", function()
  it("answers 503 and names the request", function()
    local app = http_app.start { linger = "0s", drain = "300ms" }
    local conn = assert(http.connect(app.port))
    conn:send_request("GET", "/slow?ms=60000")
    app:signal "TERM"
    local response = assert(conn:read_response())
    assert.equal(503, response.status)
    assert.equal("close", response.headers.connection)
    assert.equal("1", response.headers["retry-after"])
    local record = app:wait_log { msg = "request aborted" }
    assert.equal("/slow", record.path)
    assert.equal("GET", record.method)
    assert.equal(0, (app:wait()))
  end)

  it("resets a stream whose head was sent", function()
    local app = http_app.start { linger = "0s", drain = "300ms" }
    local conn = assert(http.connect(app.port))
    conn:send_request("GET", "/stream?ms=60000")
    local _, err = conn:read_response(0.3)
    assert.is_truthy(err)
    app:signal "TERM"
    assert.equal("ECONNRESET", conn:wait_close())
    assert.equal(0, (app:wait()))
  end)

  it("answers 503 to a request that comes while the loop is busy at its end", function()
    local app = http_app.start { linger = "0s", drain = "400ms",
      listen = 'timeouts = { first_byte_grace = "10s" }', script = [[
      local function say(text) io.stdout:write(text, "\n") io.stdout:flush() end
      server:get("/spin", function(req)
        say "begins"
        req.draining:wait()
        tide.sleep(0.1)
        say "spins"
        local till = os.clock() + 0.6 -- beyond the end of the drain
        while os.clock() < till do end
        tide.sleep(60)
      end)
    ]] }
    local silent = assert(http.connect(app.port)) -- a young one holds the drain, too
    local spinning = assert(http.connect(app.port))
    spinning:send_request("GET", "/spin")
    app:wait_stdout "begins"
    app:signal "TERM"
    app:wait_stdout "spins"
    silent:send_request("POST", "/slow", { body = "a" })
    for _, conn in ipairs { spinning, silent } do
      local response = assert(conn:read_response())
      assert.equal(503, response.status)
      assert.equal("close", response.headers.connection)
    end
    assert.equal(0, (app:wait()))
  end)

  it("is forced by a second SIGINT", function()
    local app = http_app.start { linger = "0s" }
    local conn = assert(http.connect(app.port))
    conn:send_request("GET", "/slow?ms=60000")
    app:signal "INT"
    app:wait_log { msg = "listener closed" }
    local since = loop.now()
    app:signal "INT"
    local response = assert(conn:read_response())
    assert.equal(503, response.status)
    assert.equal("close", response.headers.connection)
    assert.equal(0, (app:wait()))
    -- Nothing is waited for, but at most a second for a client that does not take its 503.
    assert.is_true(loop.now() - since < 1.2, "took " .. loop.now() - since)
  end)

  it("names the requests that a second SIGINT breaks off before the drain", function()
    local app = http_app.start { linger = "10s" }
    local slow, stream = assert(http.connect(app.port)), assert(http.connect(app.port))
    slow:send_request("GET", "/slow?ms=60000")
    stream:send_request("GET", "/stream?ms=60000")
    stream:read_response(0.3)
    app:signal "INT"
    app:wait_log { to = "draining" }
    app:signal "INT"
    assert.equal(503, assert(slow:read_response()).status)
    assert.equal("ECONNRESET", stream:wait_close())
    assert.equal(0, (app:wait()))
    local paths = {}
    for _, record in ipairs(app:find_logs { msg = "request aborted" }) do
      paths[record.path] = record.reason
    end
    assert.same({ ["/slow"] = "forced by a second SIGINT", ["/stream"] = "stream grace" }, paths)
    assert.equal(2, app:find_logs({ msg = "drained" })[1].forced)
  end)
end)
