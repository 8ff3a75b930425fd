-- A drain that waits does not turn the loop: hours of waiting must cost nothing.
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"
local usage = require "support.usage"

local function assert_idle(app)
  local before = usage.cpu(app.pid)
  loop.turn_for(1)
  local used = usage.cpu(app.pid) - before
  assert.is_true(app:is_running())
  assert.is_true(used < 0.02, ("%.1f ms of CPU in a second"):format(used * 1000))
end

describe("the process uses no CPU", function()
  it("while it is ready, with checks and heartbeats and an open connection", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.check("db", { every = "1s" }, function() return true end)
      tide.worker("outbox", { every = "1s" }, function() end)
      tide.http.listen { port = tonumber(os.getenv "PORT") }]] }
    app:wait_ready()
    local conn = assert(http.connect(app.port))
    assert_idle(app)
    conn:close()
  end)

  it("while a drain waits for a request", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.config { shutdown = { linger = 0 } }
      tide.http.listen { port = tonumber(os.getenv "PORT") }:get("/", function() tide.sleep(60) end)
      ]] }
    app:wait_ready()
    local conn = assert(http.connect(app.port))
    conn:send_request("GET", "/")
    app:signal "TERM"
    app:wait_log { msg = "listener closed" }
    loop.turn_for(1.1) -- connections that never spoke are given a second
    assert_idle(app)
  end)

  it("while a hook waits", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.shutdown:on("hook", function() tide.sleep(60) end)
      tide.run_until_terminated()]] }
    app:wait_ready()
    app:signal "TERM"
    app:wait_log { to = "draining" }
    assert_idle(app)
  end)
end)
