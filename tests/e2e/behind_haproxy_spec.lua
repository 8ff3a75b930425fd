-- Rolling restarts behind HAProxy, which asks /health/ready: no client notices.
-- TIDE_ROLLING=100 restarts a hundred times instead of a few.
local load = require "support.load"
local proc = require "support.process"
local rolling = require "support.rolling"

local CLIENTS = {
  keep_alive = 6, per_request = 4, pipelined = 2, post = 8, think = 10, pace = 2, slow = 30,
  body = 3000,
}

-- HAProxy sees the 503 within three probes of 100 ms; the rest is for a busy
-- machine, where a probe may wait for its turn.
local LINGER = "600ms"

local function start_load(port)
  local options = { port = port }
  for name, value in pairs(CLIENTS) do options[name] = value end
  return load.start(options)
end

describe("two processes behind HAProxy, restarted in turn,", function()
  if not proc.read_file "/usr/sbin/haproxy" then
    return pending "haproxy is not installed (scripts/setup.sh does)"
  end

  for reuse, few in pairs { safe = 10, always = 4 } do
    it("lose no request, with http-reuse " .. reuse, function()
      local nodes = rolling.nodes { linger = LINGER }
      local proxy = rolling.haproxy(nodes, { reuse = reuse })
      local clients = start_load(proxy.port)
      local rounds = rolling.rounds(few)
      rolling.restart(nodes, rounds, clients)
      local counts = clients:finish()
      local seen = rolling.haproxy_counts(proxy)
      rolling.report("haproxy, http-reuse " .. reuse, rounds, counts, seen)
      -- Nor did it see one of its own requests fail. A connection that was refused and
      -- made elsewhere may be: a probe may come late.
      assert.is_true(seen.stot > 100)
      assert.equal(0, seen.eresp)
      assert.equal(0, seen.hrsp_5xx)
      -- The proxy hides the restarts from all of them, altogether.
      for _, kind in ipairs { "keep_alive", "per_request", "pipelined", "post" } do
        assert.is_true(counts[kind].answered > 100, kind)
        assert.equal(0, counts[kind].retried, kind)
        assert.equal(0, counts[kind].resent, kind)
      end
      clients:check_executed(rolling.executed(nodes))
    end)
  end
end)
