-- Nothing that was received is lost: in a handler, on an idle connection, or in
-- the kernel's accept queue.
local http = require "support.http_client"
local http_app = require "support.http_app"
local loop = require "support.loop"

describe("a drain", function()
  it("answers the request in a handler, with Connection: close, and ends with it", function()
    local app = http_app.start { linger = "100ms" }
    local conn = assert(http.connect(app.port))
    conn:send_request("GET", "/slow?ms=700")
    app:signal "TERM"
    local response = assert(conn:read_response())
    assert.equal(200, response.status)
    assert.equal("slow", response.body)
    assert.equal("close", response.headers.connection)
    assert.equal("eof", conn:wait_close())
    assert.equal(0, (app:wait()))
    -- 700 ms of the handler; the rest is a bound for a busy machine
    assert.is_true(app:seconds_to_end() < 1.7)
  end)

  it("says close on every kind of answer", function()
    local app = http_app.start { linger = "3s" }
    app:signal "TERM"
    app:wait_log { to = "draining" }
    for _, path in ipairs { "/hello", "/nope", "/stream?ms=1" } do
      local response = http.get(app.port, path)
      assert.equal("close", response.headers.connection, path)
    end
    assert.equal("close", http.request("HEAD", app.port, "/hello").headers.connection)
    assert.equal("close", http.request("DELETE", app.port, "/hello").headers.connection)
  end)

  it("serves a pooled connection during the linger, and tells it to go", function()
    local app = http_app.start { linger = "1s" }
    local conn = assert(http.connect(app.port))
    assert.equal("keep-alive", conn:request("GET", "/hello").headers.connection)
    app:signal "TERM"
    app:wait_log { to = "draining" }
    local response = assert(conn:request("POST", "/echo", { body = "once" }))
    assert.equal("once", response.body)
    assert.equal("close", response.headers.connection)
  end)

  it("serves 50 clients that had sent but were not accepted yet", function()
    local app = http_app.start { linger = "0s" }
    app:signal "STOP"
    local conns = {}
    for i = 1, 50 do
      conns[i] = assert(http.connect(app.port))
      conns[i]:send_request("POST", "/slow?ms=10", { body = "b" .. i })
    end
    app:signal "TERM"
    app:signal "CONT"
    for i = 1, 50 do
      local response = assert(conns[i]:read_response())
      assert.equal(201, response.status)
      assert.equal("b" .. i, response.body)
      assert.equal("close", response.headers.connection)
    end
    assert.equal(0, (app:wait()))
  end)

  it("refuses new connections once it lingers no more", function()
    local app = http_app.start { linger = "0s" }
    local conn = assert(http.connect(app.port))
    conn:send_request("GET", "/slow?ms=600")
    app:signal "TERM"
    app:wait_log { msg = "listener closed" }
    local _, err = http.connect(app.port)
    assert.equal("ECONNREFUSED", err)
    assert.equal(200, conn:read_response().status)
  end)

  it("does not process what was pipelined behind the last answer", function()
    local app = http_app.start { linger = "0s" }
    local conn = assert(http.connect(app.port))
    conn:send("GET /slow?ms=400 HTTP/1.1\r\nHost: a\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n")
    app:signal "TERM"
    assert.equal("slow", assert(conn:read_response()).body)
    assert.equal("eof", conn:wait_close())
    assert.equal("", conn.buffer)
  end)
end)

describe("readiness", function()
  it("is 503 from the signal on, while the linger still serves and liveness stays 200", function()
    local app = http_app.start { linger = "2s" }
    local probe = assert(http.connect(app.manage_port))
    assert.equal(200, probe:request("GET", "/health/ready").status)
    app:signal "TERM"
    app:wait_log { to = "draining" }
    local response = http.get(app.manage_port, "/health/ready")
    assert.equal(503, response.status)
    assert.matches('"state":"draining"', response.body, 1, true)
    assert.equal(200, http.get(app.manage_port, "/health/live").status)
    assert.equal("hello", http.get(app.port, "/hello").body)
    loop.turn_for(0.1)
    assert.equal(503, http.get(app.manage_port, "/health/ready").status)
  end)
end)
