-- Rolling restarts behind nginx, which keeps connections to its upstreams and asks
-- nobody whether they are ready: no client notices.
-- TIDE_ROLLING=100 restarts a hundred times instead of a few.
local load = require "support.load"
local proc = require "support.process"
local rolling = require "support.rolling"

describe("two processes behind nginx, restarted in turn,", function()
  if not proc.read_file "/usr/sbin/nginx" then
    return pending "nginx is not installed (scripts/setup.sh does)"
  end

  it("lose no request", function()
    -- nginx counts its keepalive_timeout from the end of the last answer.
    local nodes = rolling.nodes { linger = "600ms" }
    local proxy = rolling.nginx(nodes, { idle = "300ms" })
    local clients = load.start {
      port = proxy.port, keep_alive = 6, per_request = 4, pipelined = 2, post = 8, think = 10,
      pace = 2, slow = 30, body = 3000,
    }
    local rounds = rolling.rounds(10)
    rolling.restart(nodes, rounds, clients)
    local counts = clients:finish()
    rolling.report("nginx", rounds, counts)
    for _, kind in ipairs { "keep_alive", "per_request", "pipelined", "post" } do
      assert.is_true(counts[kind].answered > 100, kind)
      assert.equal(0, counts[kind].retried, kind)
    end
    clients:check_executed(rolling.executed(nodes))
  end)
end)
