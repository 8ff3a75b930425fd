-- Thousands of clients that lose their connections in one instant all come back in
-- the next one.
local drain = require "support.drain"
local http_app = require "support.http_app"
local proc = require "support.process"

describe("idle_close_spread", function()
  it("closes 5,000 idle connections evenly over its time", function()
    if not drain.descriptors(12000) then return pending "skipped: too few descriptors" end
    local app = http_app.start { linger = "0s", listen = "idle_close_spread = '2s'" }
    local idle = drain.clients { port = app.port, mode = "idle", clients = 5000, for_ms = 20000 }
    idle:wait_stdout("(running)\n", 20)
    app:signal "TERM"
    local result = drain.result(idle)
    assert.equal(0, (app:wait()))
    assert.same({}, drain.faults(result))
    assert.equal(5000, result.closed)
    local at = result.closed_at -- deciles: from the first to the last
    local span = at[11] - at[1]
    assert.is_true(span > 1.6 and span < 2.4, ("%.3f s"):format(span))
    for i = 1, 10 do -- a tenth of them in a tenth of the time, within a fifth of it
      local part = (at[i + 1] - at[i]) / span
      assert.is_true(part > 0.08 and part < 0.12, ("part %d: %.4f"):format(i, part))
    end
  end)

  it("lets a client that speaks meanwhile be served", function()
    local http = require "support.http_client"
    local app = http_app.start { linger = "0s", listen = "idle_close_spread = '1s'" }
    local conns, served = {}, 0
    for i = 1, 10 do
      conns[i] = assert(http.connect(app.port))
      assert(conns[i]:request("GET", "/hello"))
    end
    app:signal "TERM"
    app:wait_log { msg = "listener closed" }
    for _, conn in ipairs(conns) do
      if not conn.closed then
        local response = assert(conn:request("GET", "/hello"))
        assert.equal("close", response.headers.connection)
        served = served + 1
      end
    end
    assert.is_true(served > 0)
    assert.equal(0, (app:wait()))
  end)

  it("must be shorter than the drain", function()
    local code, _, err = proc.run { script = [[
      local tide = require "moontide"
      tide.config { shutdown = { drain = "2s" } }
      tide.http.listen { port = tonumber(os.getenv "PORT"), idle_close_spread = "3s" }
    ]] }
    assert.equal(78, code)
    assert.matches("app.lua:3: tide.http.listen: idle_close_spread 3s must be shorter than "
      .. "shutdown.drain, 2s", err, 1, true)
  end)
end)
