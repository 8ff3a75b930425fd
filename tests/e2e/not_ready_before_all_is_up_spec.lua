-- Ready is a level: after the bind has succeeded and every startup phase is over, not before.
local http = require "support.http_client"
local proc = require "support.process"

local function status(app, path)
  return http.get(app.manage_port, path).status
end

describe("readiness", function()
  it("is 503 while startup runs, and /health/startup too", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.startup:phase("db", function() tide.sleep(1.5) end)
      tide.run_until_terminated()]] }
    app:wait_alive()
    assert.equal(503, status(app, "/health/ready"))
    assert.equal(503, status(app, "/health/startup"))
    assert.equal(200, status(app, "/health/live"))
    app:wait_ready()
    assert.equal(200, status(app, "/health/startup"))
  end)

  it("never comes when the port is in use: exit 1 and a message", function()
    local first = proc.start { script = [[
      require("moontide").http.listen { port = tonumber(os.getenv "PORT") }]] }
    first:wait_ready()
    local second = proc.start {
      script = [[
        local tide = require "moontide"
        tide.on_state(function(_, to) io.stdout:write(to, "\n") end)
        tide.http.listen { port = tonumber(os.getenv "TAKEN") }]],
      env = { TAKEN = first.port },
    }
    assert.equal(1, (second:wait()))
    assert.is_nil(second:stdout():find "ready")
    local record = second:find_logs { level = "error" }[1]
    assert.matches(tostring(first.port), record.msg)
  end)

  it("is 503 from the signal on while requests are still served", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.config { shutdown = { linger = "1s" } }
      local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
      server:get("/", function() return "served" end)]] }
    app:wait_ready()
    app:signal "TERM"
    app:wait_log { from = "ready", to = "draining" }
    assert.equal(503, status(app, "/health/ready"))
    assert.equal(200, status(app, "/health/live"))
    assert.equal("served", http.get(app.port, "/").body)
    assert.equal(0, (app:wait()))
  end)
end)
