-- Behind a head that no body follows comes the next answer, with its first byte; a body or a last
-- chunk there would be read as its head (haproxy/haproxy#1932, tornadoweb/tornado#2741).
local http = require "support.http_client"
local http_app = require "support.http_app"

local SCRIPT = [[
  server:get("/empty", function() return 204, nil end)
  server:get("/known", function() return 304, nil, { ETag = '"a"' } end)
  server:get("/reset", function() return 205, nil end)
  server:head("/unknown", function() return 200, nil, { ETag = '"a"' } end)
]]

local function request(method, path)
  return ("%s %s HTTP/1.1\r\nHost: a\r\n\r\n"):format(method, path)
end

local cases = {
  { "HEAD", "/hello", 200, "5" },
  { "HEAD", "/stream?ms=1", 200 },
  { "HEAD", "/nope", 404, "9" },
  { "HEAD", "/unknown", 200 }, -- not 0: that would be GET's length (amphp/http-server#393)
  { "GET", "/empty", 204 },
  { "HEAD", "/empty", 204 },
  { "GET", "/known", 304 },
  { "GET", "/reset", 205, "0" },
}

describe("an answer without a body", function()
  for _, case in ipairs(cases) do
    local method, path, status, length = table.unpack(case)
    it(("to %s %s is followed by the next answer at once"):format(method, path), function()
      local app = http_app.start { linger = "0s", script = SCRIPT }
      local conn = assert(http.connect(app.port))
      conn:send(request(method, path) .. request("GET", "/hello"))
      conn.method = "HEAD" -- whatever it was: only the head is read
      local first = assert(conn:read_response())
      assert.equal(status, first.status)
      assert.is_nil(first.headers["transfer-encoding"])
      assert.equal(length, first.headers["content-length"])
      conn.method = "GET"
      local second, _, partial = conn:read_response()
      assert.is_truthy(second, partial)
      assert.equal("hello", second.body)
      assert.equal("", conn.buffer)
    end)
  end
end)
