-- Who balances load hears of the end of a process late: as long as it lingers, each new client is
-- served, and told that this connection ends (kubernetes/kubernetes#43576).
local http = require "support.http_client"
local http_app = require "support.http_app"
local loop = require "support.loop"

describe("during the linger", function()
  it("every client that comes is served, on a connection that says close", function()
    local app = http_app.start { linger = "1500ms" }
    app:signal "TERM"
    app:wait_log { to = "draining" }
    local from, served = loop.now(), 0
    -- Up to 300 ms before its end, which is a bound for a busy machine.
    while loop.now() - from < 1.2 do
      local conn = assert(http.connect(app.port))
      local response = assert(conn:request("GET", "/hello"))
      assert.equal(200, response.status)
      assert.equal("close", response.headers.connection)
      assert.equal("eof", conn:wait_close())
      served = served + 1
      loop.turn_for(0.01)
    end
    assert.is_true(served >= 10)
    assert.equal(0, (app:wait()))
  end)

  it("a second request on a connection that was told to go is not answered", function()
    local app = http_app.start { linger = "500ms" }
    app:signal "TERM"
    app:wait_log { to = "draining" }
    local conn = assert(http.connect(app.port))
    conn:send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /count HTTP/1.1\r\nHost: a\r\n\r\n")
    assert.equal("hello", assert(conn:read_response()).body)
    assert.equal("eof", conn:wait_close())
    assert.equal("", conn.buffer)
    assert.equal("2", http.get(app.port, "/count").body) -- the first, and this one
  end)
end)
