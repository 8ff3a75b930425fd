-- Server-sent events: how they look on the wire, and how they end.
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = os.getenv "LINGER" or "0s", drain = "10s" } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT"),
  stream_grace = os.getenv "GRACE" or "500ms" }
local ended = {}
server:get("/events", { stream = true }, function(req, res)
  local s = res:sse { retry = "2s" }
  s:send("tick", { n = 1 }, 7)
  s:send(nil, "one\ntwo\r\nthree\rfour")
  s:send("empty")
  s:comment("a\nb")
  s:send("last", req.headers["last-event-id"] or "none")
  s.draining:wait()
  s:send("shutdown", "bye")
end)
server:get("/deaf", { stream = true }, function(req, res)
  local mark <close> = setmetatable({}, { __close = function() ended.deaf = true
    tide.log.info("closed", { what = "deaf" }) end })
  local s = res:sse { keepalive = "50ms" }
  s:send("first")
  tide.sleep(3600)
end)
server:get("/pieces", function(req, res)
  for i = 1, 100 do res:write("piece\n") tide.sleep(0.1) end
end)
server:get("/bad", function(req, res)
  local s = res:sse { keepalive = false }
  local function said(...) local _, err = pcall(s.send, s, ...) return err end
  s:send("errors", { said("a\nb", "x"), said("a", "x", "1\r2"), said("a", "x", "\0"),
    said({}, "x"), said("a", print) })
end)
server:get("/options", function(req, res)
  return (select(2, pcall(res.sse, res, { retri = 1 })))
end)
server:get("/late", function(req, res)
  tide.sleep(0.6)
  res:sse()
end)
server:get("/closed", { stream = true }, function(req, res)
  local s = res:sse()
  s:send("a")
  s:close()
  tide.log.info("state", { closed = s:closed() })
end)
server:get("/two", { stream = true }, function(req, res)
  local s = res:sse()
  tide.all { function() for i = 1, 50 do s:send("a", ("x"):rep(20000)) end end,
    function() for i = 1, 50 do s:send("b", ("y"):rep(20000)) end end }
end)
server:get("/header", function(req, res)
  res:header("bad name", "x")
  return select(2, pcall(function() res:sse() end))
end)
server:get("/hello", function() return "hello" end)
server:get("/wait", function() tide.sleep(2) return "waited" end)
]]

local function start(env)
  local app = proc.start { script = SCRIPT, env = env }
  app:wait_ready()
  return app
end

local function ask(app, path, options)
  local conn = assert(http.connect(app.port))
  conn:send_request("GET", path, options)
  return conn
end

local function wait_for(conn, text)
  return loop.wait(function() return conn.buffer:find(text, 1, true) end, 10, text)
end

describe("an event stream", function()
  it("encodes names, ids, lines and comments", function()
    local app = start()
    local conn = ask(app, "/events", { headers = { ["Last-Event-ID"] = "41" } })
    wait_for(conn, "41")
    assert.matches("Content%-Type: text/event%-stream\r\n", conn.buffer)
    assert.matches("Cache%-Control: no%-cache\r\n", conn.buffer)
    app:signal "TERM"
    local response = assert(conn:read_response())
    assert.equal("retry: 2000\n\n"
      .. "event: tick\nid: 7\ndata: {\"n\":1}\n\n"
      .. "data: one\ndata: two\ndata: three\ndata: four\n\n"
      .. "event: empty\ndata: \n\n"
      .. ": a\n: b\n\n"
      .. "event: last\ndata: 41\n\n"
      .. "event: shutdown\ndata: bye\n\n", response.body)
    assert.equal("eof", conn:wait_close())
    assert.equal(0, (app:wait()))
  end)

  it("refuses what would break a line, and options that do not exist", function()
    local app = start()
    local response = http.get(app.port, "/bad")
    local errors = response.body:match "data: (.*)\n\n"
    assert.matches("event name has a line break", errors)
    assert.matches("the id has a line break.*the id has a line break", errors)
    assert.matches("event name is a text, not a table", errors)
    assert.matches("the data are a text or a table, not a function", errors)
    assert.matches('unknown option of res:sse "retri"; did you mean "retry"',
      http.get(app.port, "/options").body)
    assert.matches("%.lua:%d+: res:sse: a header has a bad name",
      http.get(app.port, "/header").body)
  end)

  it("is over with its head where HEAD asked for it", function()
    local app = start()
    local conn = assert(http.connect(app.port))
    local head = assert(conn:request("HEAD", "/deaf"))
    assert.equal("text/event-stream", head.headers["content-type"])
    conn.method = "GET"
    assert.equal("hello", assert(conn:request("GET", "/hello")).body)
    app:wait_log { msg = "closed", what = "deaf" }
  end)

  it("is not chunked for HTTP/1.0", function()
    local app = start()
    local conn = assert(http.connect(app.port))
    conn:send("GET /closed HTTP/1.0\r\n\r\n")
    assert.equal("eof", conn:wait_close())
    assert.matches("\r\n\r\nevent: a\ndata: \n\n$", conn.buffer)
    assert.is_nil(conn.buffer:find "chunked")
  end)

  it("ends when it is closed, before its handler does", function()
    local app = start()
    assert.equal("event: a\ndata: \n\n", http.get(app.port, "/closed").body)
    assert.is_true(app:wait_log({ msg = "state" }).closed)
  end)

  it("may have several senders, whose events stay whole while the client is slow", function()
    local app = start()
    local conn = ask(app, "/two")
    conn:stop_reading()
    loop.turn_for(0.2)
    conn.socket:read_start(function(err, data)
      if data then conn.buffer = conn.buffer .. data else conn.closed = err or "eof" end
    end)
    local body = assert(conn:read_response()).body
    local count = 0
    for name, data in body:gmatch "event: (%a)\ndata: ([^\n]*)\n\n" do
      assert.equal((name == "a" and "x" or "y"):rep(20000), data)
      count = count + 1
    end
    assert.equal(100, count)
  end)

  it("sends comments while it has nothing to say", function()
    local app = start()
    local conn = ask(app, "/deaf")
    loop.wait(function() return select(2, conn.buffer:gsub("\n: \n\n", "")) >= 3 end, 10,
      "three comments")
  end)
end)

describe("a drain", function()
  it("ends streams that do not end by themselves: events cleanly, others with a reset", function()
    local app = start()
    local deaf, pieces = ask(app, "/deaf"), ask(app, "/pieces")
    wait_for(deaf, "first")
    wait_for(pieces, "piece")
    app:signal "TERM"
    assert.equal("eof", deaf:wait_close())
    assert.matches("\r\n0\r\n\r\n$", deaf.buffer)
    assert.equal("ECONNRESET", pieces:wait_close())
    assert.is_nil(pieces.buffer:find("\r\n0\r\n", 1, true))
    -- stream_grace of 0.5 s and the closing of two connections; 5 s only says "hangs"
    assert.equal(0, (app:wait(5)))
    assert.is_true(app.exited_at - app.signalled_at >= 0.5)
    app:wait_log { msg = "stream closed", path = "/deaf" }
    app:wait_log { msg = "request aborted", path = "/pieces", reason = "stream grace" }
    app:wait_log { msg = "closed", what = "deaf" } -- its <close> variable
  end)

  it("lets streams begin while it lingers, and tells them at once", function()
    local app = start { LINGER = "1s" }
    app:signal "TERM"
    app:wait_log { msg = "lifecycle.state.changed", to = "draining" }
    local response = assert(http.get(app.port, "/events"))
    assert.equal("close", response.headers.connection)
    assert.matches("event: shutdown\ndata: bye\n\n$", response.body)
  end)

  it("lets no stream begin afterwards: 503", function()
    local app = start { GRACE = "5s" }
    local late, busy, stream = ask(app, "/late"), ask(app, "/wait"), ask(app, "/events")
    wait_for(stream, "none")
    local kept = assert(http.connect(app.port)) -- young: its first request is waited for
    kept:send "GET /events HTTP/1.1\r\nHost: a\r\n"
    loop.turn_for(0.05)
    app:signal "TERM"
    app:wait_log { msg = "listener closed" }
    kept:send "\r\n"
    local refused = assert(kept:read_response())
    assert.equal(503, refused.status)
    assert.equal("close", refused.headers.connection)
    local raised = assert(late:read_response())
    assert.equal(503, raised.status)
    assert.equal("1", raised.headers["retry-after"])
    assert.equal("close", raised.headers.connection)
    assert.equal("waited", assert(busy:read_response()).body)
    assert.equal(0, (app:wait()))
  end)

  it("is the same for curl: all events, a clean end, exit code 0", function()
    local app = start()
    local curl = proc.start {
      program = "/usr/bin/curl", argv = { "-sN", ("localhost:%d/events"):format(app.port) },
    }
    curl:wait_stdout "last"
    app:signal "TERM"
    assert.equal(0, (curl:wait()))
    assert.matches("event: shutdown\ndata: bye\n\n$", curl:stdout())
    assert.equal(0, (app:wait()))
  end)
end)
