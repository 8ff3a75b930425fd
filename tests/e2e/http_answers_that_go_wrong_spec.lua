-- Answers that cannot be kept: the client can always tell, the log says why, and what a handler
-- holds is let go of.
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s", drain = os.getenv "DRAIN" or "10s", timeout = "20s" } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT"), handler_timeout = "200ms" }
local function watched(name)
  return setmetatable({}, { __close = function(_, err)
    tide.log.info("left", { what = name, why = err and tostring(err) or "returned" })
  end })
end
server:get("/exact", function(req, res)
  res:header("Content-Length", 6)
  res:write "one"
  res:write "two"
end)
server:get("/short", function(req, res)
  res:header("Content-Length", 6)
  res:write "one"
  tide.sleep(0.05)
end)
server:get("/long", function(req, res)
  res:header("Content-Length", 4)
  res:write "one"
  tide.sleep(0.05)
  res:write "two"
end)
server:get("/wrong", function() return 200, "abc", { ["Content-Length"] = 4 } end)
server:get("/right", function() return 200, "abc", { ["Content-Length"] = "3" } end)
server:get("/error/status", function() tide.http.error "no such order" end)
server:get("/error/message", function() tide.http.error(404, { id = 7 }) end)
server:get("/error/bare", function() tide.http.error(404) end)
server:get("/words", function() return 200, "abc", { ["Content-Length"] = "three" } end)
server:get("/coding", function() return 200, "abc", { ["Transfer-Encoding"] = "gzip" } end)
server:route("HEAD", "/size", function() return 200, nil, { ["Content-Length"] = 1234 } end)
server:get("/name", function(req, res) res:header("a b", "x") res:write "a" end)
server:get("/value", function(req, res) res:header("a", "x\r\ny: z"):write "a" end)
server:get("/lists", function()
  local headers = { Many = { "a", 1, "b" } }
  for i = 1, 2000 do headers["X-" .. i] = {} end
  return 200, "abc", headers
end)
server:get("/crowd", function()
  local headers = {}
  for i = 1, 65 do headers[i] = "x" .. i end
  return 200, "abc", { X = headers }
end)
server:get("/fail", function(req, res) res:write "half" tide.sleep(0.05) error "secret" end)
server:get("/both", function(req, res) res:write "half" tide.sleep(0.05) return { a = 1 } end)
server:get("/stream", function(req, res)
  res:stream(function(write) write "half" tide.sleep(0.05) error "secret" end)
end)
server:get("/slow", function() local mark <close> = watched "slow" tide.sleep(60) end)
server:get("/slower", { timeout = "600ms" }, function() tide.sleep(60) end)
server:get("/left", { timeout = "10s" }, function(req)
  return tostring(req:deadline() - tide.now())
end)
server:post("/grow", { body_limit = 1000, timeout = "none" }, function(req)
  local mark <close> = watched "grow"
  for _ in req:chunks() do end
end)
server:post("/whole", { body_limit = 1000, timeout = "none" }, function(req)
  tide.log.info("whole", { why = select(2, req:body()) })
end)
server:get("/half", function(req, res) res:write "half" tide.sleep(60) end)
server:get("/free", { timeout = "none" }, function() tide.sleep(0.5) return "free" end)
server:get("/events", { stream = true }, function(req, res)
  local s = res:sse()
  tide.sleep(0.5)
  s:send "still here"
end)
server:get("/hold", { timeout = "none" }, function() local mark <close> = watched "hold"
  tide.sleep(60) end)
server:get("/holdhalf", { timeout = "none" }, function(req, res)
  local mark <close> = watched "holdhalf"
  res:header("Content-Length", 100):write "half"
  tide.sleep(60)
end)
server:get("/hello", function() return "hello" end)
]]

local function start(env)
  local app = proc.start { script = SCRIPT, env = env }
  app:wait_ready()
  return app
end

-- How the connection ends that asks for a path, and what came before.
local function ask(app, path)
  local conn = assert(http.connect(app.port))
  conn:send_request("GET", path)
  return assert(conn:wait_close()), conn.buffer
end

local function failure(app, path)
  return app:wait_log { msg = "handler failed", route = "GET " .. path }
end

describe("an answer", function()
  it("may promise its length, and keeps the connection", function()
    local app = start()
    local conn = assert(http.connect(app.port))
    local response = assert(conn:request("GET", "/exact"))
    assert.equal("6", response.headers["content-length"])
    assert.is_nil(response.headers["transfer-encoding"])
    assert.equal("onetwo", response.body)
    assert.equal("abc", assert(conn:request("GET", "/right")).body)
    assert.equal("1234", assert(conn:request("HEAD", "/size")).headers["content-length"])
    conn.method = "GET"
    assert.equal("hello", assert(conn:request("GET", "/hello")).body)
  end)

  it("that breaks its promise is reset, or 500 where nothing was sent", function()
    local app = start()
    for _, path in ipairs { "/short", "/long" } do
      local how, came = ask(app, path)
      assert.equal("ECONNRESET", how)
      assert.is_nil(came:find "two")
      assert.matches("length that Content%-Length promises", failure(app, path).error)
    end
    assert.equal(500, http.get(app.port, "/wrong").status)
    assert.matches("length that Content%-Length promises", failure(app, "/wrong").error)
    assert.equal(500, http.get(app.port, "/words").status)
    assert.matches("whole number of bytes", failure(app, "/words").error)
    assert.equal(500, http.get(app.port, "/coding").status)
    assert.matches("set by the server", failure(app, "/coding").error)
  end)

  it("that tide.http.error cannot give is 500, and the log says what it wants", function()
    local app = start()
    for path, wanted in pairs {
      status = "the status is a whole number from 200 to 599, not no such order",
      message = "the message is a string, not a table",
    } do
      assert.equal(500, http.get(app.port, "/error/" .. path).status)
      assert.matches("%.lua:%d+: tide%.http%.error: " .. wanted .. "$",
        failure(app, "/error/" .. path).error)
    end
    assert.equal(404, http.get(app.port, "/error/bare").status)
  end)

  it("whose header would begin another line is 500", function()
    local app = start()
    for _, path in ipairs { "/name", "/value" } do
      local response = http.get(app.port, path)
      assert.equal(500, response.status)
      assert.is_nil(response.headers.y)
      assert.matches("res:write: a header has a bad name, or a line", failure(app, path).error)
    end
  end)

  it("has as many fields as its lists have values, and 64 at most", function()
    local app = start()
    local response = http.get(app.port, "/lists")
    assert.equal(200, response.status)
    assert.matches("a.*1.*b", response.headers.many)
    assert.is_nil(response.headers["x-1"])
    assert.equal(500, http.get(app.port, "/crowd").status)
    assert.matches("at most 64 header fields", failure(app, "/crowd").error)
  end)

  it("that fails in its middle is reset", function()
    local app = start()
    for _, path in ipairs { "/fail", "/stream" } do
      local how, came = ask(app, path)
      assert.equal("ECONNRESET", how)
      assert.is_nil(came:find("\r\n0\r\n", 1, true))
      assert.matches("secret", failure(app, path).error)
    end
    assert.equal("ECONNRESET", (ask(app, "/both")))
    assert.matches("its last piece or nothing, not a table", failure(app, "/both").error)
  end)
end)

describe("a body that grows beyond the limit of its route", function()
  it("is answered 413 where it does, and its handler gets no more of it", function()
    local app = start()
    for _, path in ipairs { "/grow", "/whole" } do
      local conn = assert(http.connect(app.port))
      conn:send(("POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"):format(path)
        .. "258\r\n" .. ("x"):rep(600) .. "\r\n")
      assert.equal("hello", http.get(app.port, "/hello").body)
      conn:send("258\r\n" .. ("x"):rep(600) .. "\r\n")
      local response = assert(conn:read_response())
      assert.equal(413, response.status)
      assert.equal("close", response.headers.connection)
    end
    assert.matches("too large", app:wait_log({ msg = "left", what = "grow" }).why)
    assert.equal("too large", app:wait_log({ msg = "whole" }).why)
    assert.same({}, app:find_logs { msg = "handler failed" })
  end)
end)

describe("handler_timeout", function()
  it("answers 503, or resets behind a head, and closes what the handler holds", function()
    local app = start()
    local response = http.get(app.port, "/slow")
    assert.equal(503, response.status)
    assert.is_true(response.took >= 0.2)
    assert.matches("handler_timeout", app:wait_log({ msg = "left", what = "slow" }).why)
    assert.equal("ECONNRESET", (ask(app, "/half")))
  end)

  it("is the route's own where it has one, and not for streams", function()
    local app = start()
    local response = http.get(app.port, "/slower")
    assert.equal(503, response.status)
    assert.is_true(response.took >= 0.6)
    assert.equal("free", http.get(app.port, "/free").body)
    local left = tonumber(http.get(app.port, "/left").body)
    assert.is_true(left > 5 and left <= 10, "req:deadline() leaves " .. left)
    assert.equal("event: still here\ndata: \n\n", http.get(app.port, "/events").body)
  end)
end)

describe("a drain that takes too long", function()
  it("ends handlers: 503 or a reset, and their <close> variables run", function()
    local app = start { DRAIN = "300ms" }
    local plain, half = assert(http.connect(app.port)), assert(http.connect(app.port))
    plain:send_request("GET", "/hold")
    half:send_request("GET", "/holdhalf")
    loop.wait(function() return half.buffer:find "half" end, 10, "half an answer")
    app:signal "TERM"
    local response = assert(plain:read_response())
    assert.equal(503, response.status)
    assert.equal("1", response.headers["retry-after"])
    assert.equal("ECONNRESET", half:wait_close())
    for _, what in ipairs { "hold", "holdhalf" } do
      assert.matches("drain timeout", app:wait_log({ msg = "left", what = what }).why)
    end
    assert.equal(0, (app:wait()))
  end)
end)
