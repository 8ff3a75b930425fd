-- The linger gives those who route to us time to notice that we are not ready any more. Who never
-- was ready has nobody to wait for; nor has who has no listener.
local proc = require "support.process"

local LISTEN = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "2s" } }
tide.http.listen { port = tonumber(os.getenv "PORT") }
]]

describe("the linger", function()
  it("lasts as long as it says after ready", function()
    local app = proc.start { script = LISTEN }
    app:wait_ready()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.is_true(app:seconds_to_end() >= 2)
    app:wait_log { task = "linger", outcome = "ok" }
  end)

  it("is none for a process that is told to end before it was ready", function()
    local app = proc.start {
      script = LISTEN .. "tide.startup:phase('db', function() tide.sleep(30) end)\n",
    }
    app:wait_alive()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.is_true(app:seconds_to_end() < 1.5, app:seconds_to_end() .. " s")
  end)

  it("is none for a startup that failed", function()
    local code, _, _, app = proc.run {
      script = LISTEN .. "tide.startup:phase('db', function() error 'refused' end)\n",
    }
    assert.equal(1, code)
    assert.is_true(app.exited_at - app.started_at < 1.5)
  end)

  it("is none for a process without a listener of its own", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.config { shutdown = { linger = "2s" } }
      tide.run_until_terminated()]] }
    app:wait_ready()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.is_true(app:seconds_to_end() < 1.5)
  end)
end)
