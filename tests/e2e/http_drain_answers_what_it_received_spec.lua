-- Nothing that was received is lost: in a handler, on an idle connection, or in
-- the kernel's accept queue.
local http = require "support.http_client"
local http_app = require "support.http_app"
local loop = require "support.loop"

-- Handlers that end in every way, each after a while.
local KINDS = [[
  local function after(req) tide.sleep(milliseconds(req)) end
  server:get("/204", function(req) after(req) end)
  server:get("/304", function(req) after(req) return 304, nil, { ETag = '"a"' } end)
  server:get("/500", function(req) after(req) error("on purpose") end)
  server:get("/list", function(req) after(req) return { 1, 2 } end)
]]
local STATUS = {
  ["/slow"] = 200, ["/204"] = 204, ["/304"] = 304, ["/500"] = 500, ["/list"] = 200,
}

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
    local app = http_app.start { linger = "3s", script = KINDS }
    local waiting = {}
    for path in pairs(STATUS) do -- these are in their handlers when it comes
      waiting[path] = assert(http.connect(app.port))
      waiting[path]:send_request("GET", path .. "?ms=300")
    end
    app:signal "TERM"
    app:wait_log { to = "draining" }
    for path, status in pairs(STATUS) do
      local answers = { assert(waiting[path]:read_response()), http.get(app.port, path) }
      for _, response in ipairs(answers) do
        assert.same({ status, "close" }, { response.status, response.headers.connection }, path)
      end
      assert.equal("eof", waiting[path]:wait_close())
    end
    for _, path in ipairs { "/nope", "/stream?ms=1" } do
      assert.equal("close", http.get(app.port, path).headers.connection)
    end
    assert.equal("close", http.request("HEAD", app.port, "/hello").headers.connection)
    assert.equal("close", http.request("DELETE", app.port, "/hello").headers.connection)
  end)

  it("answers a POST that came whole and is in its handler", function()
    local app = http_app.start { linger = "0s" }
    local conn = assert(http.connect(app.port))
    conn:send_request("POST", "/slow?ms=500", { body = "all of it" })
    app:signal "TERM"
    local response = assert(conn:read_response())
    assert.same({ 201, "all of it", "close" },
      { response.status, response.body, response.headers.connection })
    assert.equal(0, (app:wait()))
  end)

  it("reads the rest of a body that has begun", function()
    local app = http_app.start { linger = "0s" }
    local conn = assert(http.connect(app.port))
    conn:send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nhalf")
    assert.equal("hello", http.get(app.port, "/hello").body) -- behind it: it has been read
    app:signal "TERM"
    app:wait_log { msg = "listener closed" }
    conn:send("rest")
    assert.equal("halfrest", assert(conn:read_response()).body)
    assert.equal(0, (app:wait()))
  end)

  it("ends the connection with each 503 that it says", function()
    local app = http_app.start { linger = "0s", listen = "reject_in_drain = true" }
    local busy, kept = assert(http.connect(app.port)), assert(http.connect(app.port))
    busy:send_request("GET", "/slow?ms=800")
    kept:send("GET /hello HTTP/1.1\r\n") -- half a head, so it is waited for
    assert.equal("hello", http.get(app.port, "/hello").body)
    app:signal "TERM"
    app:wait_log { msg = "listener closed" }
    loop.turn_for(0.05)
    kept:send("Host: a\r\n\r\n")
    local response = assert(kept:read_response())
    assert.same({ 503, "close", "1" }, { response.status, response.headers.connection,
      response.headers["retry-after"] })
    assert.equal("eof", kept:wait_close())
    assert.equal(200, assert(busy:read_response()).status)
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
