-- Limits, as a script or its environment sets them.
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s" }, manage = "api", limits = { in_flight = 2 } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT"), limits = {
  body = "1KiB", request_line = 64, headers = 512, header_field = 128, header_count = 5,
  requests_per_connection = 3,
} }
local go = tide.event "go"
server:get("/hello", function() return "hello" end)
server:get("/wait", function() go:wait() return "done" end)
server:get("/go", function() go:set(true) end)
server:post("/echo", function(req) return req:body() end)
server:post("/large", { body_limit = "8KiB" }, function(req) return tostring(#req:body()) end)
]]

local function start(env)
  local app = proc.start { script = SCRIPT, env = env }
  app:wait_ready()
  return app
end

describe("a limit", function()
  it("of a size is answered by its name", function()
    local app = start()
    local function status(method, path, options)
      return assert(http.request(method, app.port, path, options)).status
    end
    assert.equal(413, status("POST", "/echo", { body = ("b"):rep(1025) }))
    assert.equal(200, status("POST", "/echo", { body = ("b"):rep(1024) }))
    assert.equal(200, status("POST", "/large", { body = ("b"):rep(8192) }))
    assert.equal(413, status("POST", "/large", { body = ("b"):rep(8193) }))
    assert.equal(414, status("GET", "/" .. ("p"):rep(100)))
    assert.equal(431, status("GET", "/hello", { headers = { X = ("v"):rep(200) } }))
    local fields = {}
    for i = 1, 5 do fields["X-" .. i] = "v" end -- and Host
    assert.equal(431, status("GET", "/hello", { headers = fields }))
  end)

  -- A reset would take the answer from a client that reads it when it has sent all.
  it("of a body is told to a client that sends on all the same", function()
    local app = start()
    for _, framing in ipairs { "-H Expect:", "-H Expect: -H 'Transfer-Encoding: chunked'" } do
      local pipe = assert(io.popen(("head -c 20000000 /dev/zero | curl -s -m 20 -o /dev/null "
        .. "-w '%%{http_code} %%{errormsg}' %s --data-binary @- http://127.0.0.1:%d/echo"):format(
        framing, app.port)))
      assert.equal("413 ", pipe:read "a")
      pipe:close()
    end
    assert.equal(200, http.get(app.port, "/hello").status)
  end)

  it("of requests on a connection ends it with the last of them", function()
    local conn = assert(http.connect(start().port))
    assert.equal("keep-alive", conn:request("GET", "/hello").headers.connection)
    assert.equal("keep-alive", conn:request("GET", "/hello").headers.connection)
    assert.equal("close", conn:request("GET", "/hello").headers.connection)
    assert.equal("eof", conn:wait_close())
  end)

  it("of requests in flight leaves connections and probes as they are", function()
    local app = start()
    local busy = {}
    for i = 1, 2 do
      busy[i] = assert(http.connect(app.port))
      busy[i]:send_request("GET", "/wait")
    end
    local conn = assert(http.connect(app.port))
    loop.wait(function()
      return conn.closed or http.get(app.port, "/hello").status == 503
    end, 5, "two in flight")
    local response = assert(conn:request("GET", "/hello"))
    assert.equal(503, response.status)
    assert.equal("1", response.headers["retry-after"])
    assert.equal("keep-alive", response.headers.connection)
    assert.equal(200, assert(conn:request("GET", "/health/ready")).status)
    busy[1]:reset()
    busy[2]:reset()
    app:signal "TERM"
    app:wait()
  end)

  it("of connections keeps places for probes, and lets others in when one leaves", function()
    local app = start { MOONTIDE_LIMITS__CONNECTIONS = 5 }
    local inside = {}
    for i = 1, 5 do
      inside[i] = assert(http.connect(app.port))
      assert.equal(200, inside[i]:request("GET", "/hello").status)
    end
    for _ = 1, 20 do
      local refused = assert(http.get(app.port, "/hello"))
      assert.equal(503, refused.status)
      assert.equal("1", refused.headers["retry-after"])
      assert.equal("close", refused.headers.connection)
      assert.equal(200, assert(http.get(app.port, "/health/ready")).status)
      assert.equal(200, assert(http.get(app.manage_port, "/health/ready")).status)
    end
    assert.equal(200, inside[1]:request("GET", "/hello").status)
    inside[2]:close()
    loop.wait(function() return http.get(app.port, "/hello").status == 200 end, 2, "a place")
  end)
end)
