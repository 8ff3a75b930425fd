-- The timeouts of a listener, as a script sets them, against a real clock. None fires early; each
-- fires within a quarter of a second, and what a busy machine adds.
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s", drain = "10s" }, timeouts = { header = "400ms" } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT"), timeouts = {
  idle = "600ms", body_idle = "500ms", body_min_rate = 0, request_total = "900ms",
  write_stall = "700ms", lingering_idle = "300ms", lingering_total = "800ms",
} }
server:get("/hello", function() return "hello" end)
server:post("/echo", function(req) return req:body() end)
server:get("/stream", function(req, res)
  for _ = 1, 400 do res:write(("x"):rep(65536)) end
end)
]]

local LATE = 0.25 + 0.5 -- how exact the look is, and a busy machine

local function start()
  local app = proc.start { script = SCRIPT }
  app:wait_ready()
  return app
end

local function assert_took(seconds, from)
  local took = loop.now() - from
  assert.is_true(took > seconds - 0.02, ("%.3f s is early"):format(took))
  assert.is_true(took < seconds + LATE, ("%.3f s is late"):format(took))
end

local function connect(app)
  local conn = assert(http.connect(app.port))
  return conn, loop.now()
end

local function open_connections(app)
  local sum = 0
  local text = http.get(app.manage_port, "/metrics").body
  for n in text:gmatch "\nmoontide_http_connections{[^\n]*} (%d+)" do sum = sum + tonumber(n) end
  return sum
end

local POST = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n"

describe("a listener ends", function()
  local app

  setup(function() app = start() end)
  teardown(function() proc.cleanup() end)

  it("a head that is not complete in time, from its first byte on", function()
    local conn = connect(app)
    loop.turn_for(0.3)
    local from = loop.now()
    conn:send("GET /hel")
    loop.turn_for(0.2)
    conn:send("lo HTTP/1.1\r\n")
    local response = assert(conn:read_response())
    assert.equal(408, response.status)
    assert.equal("close", response.headers.connection)
    assert_took(0.4, from)
    assert.equal("eof", conn:wait_close())
  end)

  it("an idle connection, without a word", function()
    local conn, from = connect(app)
    assert.equal("eof", conn:wait_close())
    assert.equal("", conn.buffer)
    assert_took(0.6, from)
  end)

  it("a body that pauses", function()
    local conn = connect(app)
    conn:send(POST .. "abc")
    loop.turn_for(0.3)
    local from = loop.now()
    conn:send("def")
    assert.equal(408, assert(conn:read_response()).status)
    assert_took(0.5, from)
  end)

  it("a body that does not pause and does not end", function()
    local conn, from = connect(app)
    conn:send(POST)
    local response
    while not response and loop.now() - from < 3 do
      conn:send("x")
      response = conn:read_response(0.1)
    end
    assert.equal(408, response and response.status)
    assert_took(0.9, from)
  end)

  it("an answer that is not read", function()
    local conn = connect(app)
    conn:stop_reading()
    local from = loop.now()
    conn:send_request("GET", "/stream")
    loop.wait(function() return open_connections(app) == 0 end, 5, "its end")
    assert_took(0.7, from)
    conn:close()
  end)

  it("one that goes on sending behind its end", function()
    local conn, from = connect(app)
    conn:send_request("GET", "/hello", { headers = { Connection = "close" } })
    assert.equal(200, assert(conn:read_response()).status)
    loop.wait(function()
      conn.socket:try_write("x")
      return open_connections(app) == 0
    end, 5, "its end")
    assert_took(0.8, from)
  end)
end)

describe("in a drain", function()
  it("timeouts go on", function()
    local app = start()
    local head, body = connect(app), connect(app)
    body:send(POST)
    head:send("GET /hel")
    loop.turn_for(0.05)
    app:signal "TERM"
    assert.equal(408, assert(head:read_response()).status)
    assert.equal(408, assert(body:read_response()).status)
    assert.equal(0, (app:wait()))
    -- Of 10 s that the drain has.
    assert.is_true(app:seconds_to_end() < 0.9 + LATE)
  end)
end)
