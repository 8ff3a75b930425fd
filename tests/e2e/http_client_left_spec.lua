-- A handler whose client has left: told at its next read or write, ended when it does not listen,
-- and, in streams and where a route asks for it, cancelled wherever it waits.
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s" } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
local count = 0
local function watched(name)
  return setmetatable({}, { __close = function(_, err)
    tide.log.info("left", { what = name, why = err and tostring(err) or "returned" })
  end })
end
server:get("/sleep", function() -- a plain route goes on to its end
  local mark <close> = watched "sleep"
  tide.sleep(0.3)
end)
server:get("/watched", { cancel_on_disconnect = true }, function()
  local mark <close> = watched "watched"
  tide.sleep(3600)
end)
server:get("/events", { stream = true }, function(req, res)
  local mark <close> = watched "events"
  res:sse():send "hello"
  tide.sleep(3600)
end)
server:get("/kept", { stream = true, cancel_on_disconnect = false }, function(req, res)
  local mark <close> = watched "kept"
  local s = res:sse()
  s:send "hello"
  tide.sleep(0.5)
end)
server:get("/told", function(req, res)
  local mark <close> = watched "told"
  local said
  repeat
    local ok, why = res:write(("x"):rep(1000))
    said = why
    tide.sleep(0.01)
  until not ok
  tide.log.info("told", { why = said })
end)
server:get("/deaf", function(req, res)
  local mark <close> = watched "deaf"
  while true do res:write(("x"):rep(100000)) end
end)
server:get("/late", function() -- an error that is an answer, for nobody
  local mark <close> = watched "late"
  tide.sleep(0.3)
  tide.http.error(404, "no such order")
end)
server:get("/stream", function(req, res)
  local mark <close> = watched "stream"
  res:stream(function(write) while true do write(("x"):rep(100000)) end end)
end)
server:post("/body", function(req)
  local mark <close> = watched "body"
  local body, why = req:body()
  tide.log.info("told", { why = tostring(why) })
end)
server:post("/chunks", function(req)
  local mark <close> = watched "chunks"
  for _ in req:chunks() do end
  tide.log.info "not to be reached"
end)
server:get("/alive", function() return "alive" end)
]]

describe("a client that leaves with a reset", function()
  local app
  setup(function()
    app = proc.start { script = SCRIPT }
    app:wait_ready()
  end)

  -- Asks, waits until `heard` has come (nil: until the handler runs), and leaves.
  local function visit(path, heard)
    local conn = assert(http.connect(app.port))
    conn:send_request("GET", path)
    if heard then
      loop.wait(function() return conn.buffer:find(heard, 1, true) end, 10, heard)
    else
      assert.equal("alive", http.get(app.port, "/alive").body)
    end
    conn:reset()
    return loop.now()
  end

  local function in_flight()
    local text = http.get(app.manage_port, "/metrics").body
    return tonumber(text:match "\nmoontide_http_requests_in_flight[^\n]* (%d+)\n")
  end

  it("cancels the handler of a stream, and of a route that asks for it, within a second", function()
    for path, heard in pairs { ["/events"] = "hello", ["/watched"] = false } do
      local since = visit(path, heard)
      local record = app:wait_log { msg = "left", what = path:sub(2) }
      assert.matches("aborted", record.why)
      assert.is_true(loop.now() - since < 1)
    end
  end)

  it("leaves other handlers alone, but not the count of requests under way", function()
    for path, heard in pairs { ["/sleep"] = false, ["/kept"] = "hello" } do
      visit(path, heard)
      loop.wait(function() return in_flight() == 0 end, 5, "no request in flight")
      assert.equal("returned", app:wait_log({ msg = "left", what = path:sub(2) }).why)
    end
  end)

  it("makes no failure of an error that would have been its answer", function()
    visit("/late", false)
    app:wait_log { msg = "left", what = "late" }
    assert.equal("alive", http.get(app.port, "/alive").body)
    assert.same({}, app:find_logs { msg = "handler failed" })
  end)

  it("is told at the next write", function()
    visit("/told", "xxx")
    assert.equal("aborted", app:wait_log({ msg = "told" }).why)
    assert.equal("returned", app:wait_log({ msg = "left", what = "told" }).why)
  end)

  it("ends handlers that write on and on, quietly", function()
    for _, path in ipairs { "/deaf", "/stream" } do
      visit(path, "xxx")
      assert.matches("client is gone", app:wait_log({ msg = "left", what = path:sub(2) }).why)
    end
    assert.same({}, app:find_logs { msg = "handler failed" })
  end)

  it("ends the reading of a body: nil and a reason, or the end of the handler", function()
    for _, path in ipairs { "/body", "/chunks" } do
      local conn = assert(http.connect(app.port))
      conn:send(("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf"):format(path))
      assert.equal("alive", http.get(app.port, "/alive").body)
      conn:reset()
      local record = app:wait_log { msg = "left", what = path:sub(2) }
      assert.matches(path == "/body" and "returned" or "gone: aborted", record.why)
    end
    assert.same({}, app:find_logs "not to be reached")
    assert.same({}, app:find_logs { msg = "handler failed" })
  end)
end)

describe("a client that closes its half", function()
  it("has not left", function()
    local app = proc.start { script = SCRIPT }
    app:wait_ready()
    local conn = assert(http.connect(app.port))
    conn:send_request("GET", "/kept")
    conn:half_close()
    local response = assert(conn:read_response())
    assert.equal("event: hello\ndata: \n\n", response.body)
    assert.equal("returned", app:wait_log({ msg = "left", what = "kept" }).why)
  end)
end)
