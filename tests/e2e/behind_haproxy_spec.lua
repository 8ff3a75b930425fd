-- Rolling restarts behind HAProxy, which asks /health/ready: no client notices.
-- TIDE_ROLLING=100 restarts a hundred times instead of a few.
local proc = require "support.process"
local rolling = require "support.rolling"

local few = { safe = 10, always = 4 } -- by http-reuse

describe("two processes behind HAProxy, restarted in turn,", function()
  if not proc.read_file "/usr/sbin/haproxy" then
    return pending "haproxy is not installed (scripts/setup.sh does)"
  end

  local function lose_nothing(reuse, rounds, load)
    -- HAProxy sees the 503 within three probes of 100 ms; the rest is for a busy
    -- machine, where a probe may wait for its turn.
    local nodes = rolling.nodes { linger = "600ms" }
    local proxy = rolling.haproxy(nodes, { reuse = reuse })
    local counts = rolling.under_load(nodes, proxy, rounds, load)
    local seen = rolling.haproxy_counts(proxy)
    rolling.report("haproxy, http-reuse " .. reuse, rounds, counts, seen)
    -- Nor did it see one of its own requests fail. A connection that was refused and
    -- made elsewhere may be: a probe may come late.
    assert.is_true(seen.stot > 100)
    assert.equal(0, seen.eresp)
    assert.equal(0, seen.hrsp_5xx)
  end

  for _, reuse in ipairs { "safe", "always" } do
    it("lose no request, with http-reuse " .. reuse, function()
      lose_nothing(reuse, rolling.rounds(few[reuse]))
    end)
  end

  it("lose none that is large, or takes longer than the linger", function()
    lose_nothing("safe", 2, { body = 400000, slow = 900 })
  end)
end)
