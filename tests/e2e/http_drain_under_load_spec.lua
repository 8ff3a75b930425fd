-- SIGTERM in the midst of a load. Who was told during the linger loses nothing;
-- without a linger only that is left which no server can help: a request that
-- crosses the FIN of an idle connection, which its client sees as EOF.
local drain = require "support.drain"
local http_app = require "support.http_app"
local loop = require "support.loop"
local proc = require "support.process"

local RUNS = tonumber(os.getenv "MOONTIDE_DRAIN_RUNS") or 10
local FEWER = math.max(1, RUNS // 3)

local function stop_once(options)
  local app = http_app.start(options.app)
  options.port = app.port
  local clients = drain.clients(options)
  clients:wait_stdout "(running)\n"
  loop.turn_for(0.02 + math.random() * 0.08)
  app:signal "TERM"
  local result = drain.result(clients)
  assert.equal(0, (app:wait()))
  return result, app
end

describe("SIGTERM under load", function()
  for _, mode in ipairs { "keep", "think", "close", "post", "post_think", "pipeline" } do
    it("loses nothing of 64 clients with a linger of 200 ms: " .. mode, function()
      local main = mode == "keep" or mode == "think" or mode == "close"
      for _ = 1, main and RUNS or FEWER do
        local result = stop_once { mode = mode, clients = 64, app = { linger = "200ms" } }
        assert.same({}, drain.faults(result))
        assert.equal(64, result.refused)
        assert.is_true(result.answered > 64)
        proc.cleanup()
      end
    end)
  end

  for _, mode in ipairs { "post", "close" } do
    it("loses nothing of 200 clients without a linger: " .. mode, function()
      for _ = 1, FEWER do
        local result = stop_once { mode = mode, clients = 200, app = { linger = "0s" } }
        assert.same({}, drain.faults(result))
        assert.equal(200, result.refused)
        proc.cleanup()
      end
    end)
  end

  it("never runs a POST whose answer is dropped", function()
    local SCRIPT = [[
      local executed = 0
      server:post("/once", function(req) executed = executed + 1 return req:body() end)
      tide.shutdown:on("say", function() tide.log.info("executed", { count = executed }) end)
    ]]
    for _ = 1, FEWER do
      local result, app = stop_once {
        mode = "post_think", path = "/once", clients = 200, pause_ms = 100,
        app = { linger = "0s", script = SCRIPT },
      }
      -- One that met our FIN was not begun; its client got EOF and may know that.
      assert.same({}, drain.faults(result, { eof_reused = true }))
      assert.equal(result.answered, app:wait_log({ msg = "executed" }).count)
      proc.cleanup()
    end
  end)
end)
