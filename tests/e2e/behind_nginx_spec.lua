-- Rolling restarts behind nginx, which keeps connections to its upstreams and asks
-- nobody whether they are ready: no client notices.
-- TIDE_ROLLING=100 restarts a hundred times instead of a few.
local proc = require "support.process"
local rolling = require "support.rolling"

describe("two processes behind nginx, restarted in turn,", function()
  if not proc.read_file "/usr/sbin/nginx" then
    return pending "nginx is not installed (scripts/setup.sh does)"
  end

  local function lose_nothing(rounds, load)
    local nodes = rolling.nodes { linger = "600ms" }
    local proxy = rolling.nginx(nodes, { idle = "300ms" })
    rolling.report("nginx", rounds, rolling.under_load(nodes, proxy, rounds, load))
  end

  it("lose no request", function()
    lose_nothing(rolling.rounds(10))
  end)

  it("lose none that is large, or takes longer than the linger", function()
    lose_nothing(2, { body = 400000, slow = 900 })
  end)
end)
