-- One process follows another under a load of clients that forgive nothing: a refused connection,
-- an EOF at a POST, a status that is not 200 are failures. $TIDE_TAKEOVERS says how many in a row.
local http = require "support.http_client"
local load = require "support.load"
local takeover = require "support.takeover"

local rounds = tonumber(os.getenv "TIDE_TAKEOVERS") or 10

-- What the probes of the management listener are told, each on a connection of its own.
local function probe(service, seen)
  local response, err = http.get(service.manage_port, "/health/ready")
  local status = response and response.status or err
  seen[status] = (seen[status] or 0) + 1
end

describe("a takeover", function()
  it("loses no request, and is ready all the time", function()
    local service = takeover.service { script = load.APP }
    local executed, seen = {}, {}
    local function env()
      executed[#executed + 1] = ("%s/executed-%d"):format(service.dir, #executed + 1)
      return { EXECUTED = executed[#executed] }
    end
    local app = service:start_ready { env = env() }
    local clients = load.start {
      port = service.port, keep_alive = 24, per_request = 16, post = 16, pipelined = 8, slow = 30,
    }
    for _ = 1, rounds do
      local successor = service:start { flags = { "--takeover=required" }, env = env() }
      while #successor:find_logs { msg = "taken over" } == 0 do
        probe(service, seen)
        clients:check()
        assert(successor:is_running(), successor:stderr())
      end
      probe(service, seen)
      assert.equal(0, (app:wait()))
      assert.same({}, app:find_logs(function(r) return r.level == "warn" or r.level == "error" end))
      app = successor
    end
    local counts = clients:finish()
    assert.is_true(clients:check_executed(executed) > 0)
    local ready = seen[200]
    seen[200] = nil
    assert.same({}, seen)
    assert.is_true(ready >= rounds)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    if os.getenv "TIDE_TAKEOVERS" then
      local slowest = 0
      for _, kind in ipairs { "keep_alive", "per_request", "post", "pipelined" } do
        slowest = math.max(slowest, counts[kind].slowest_ms)
      end
      print(("%d takeovers, %d requests answered, %d failed, slowest %.0f ms, %d probes ready")
        :format(rounds, counts.answered, counts.failed, slowest, ready))
    end
  end)
end)
