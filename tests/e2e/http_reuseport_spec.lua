-- Two processes share a port: either may come and go, and no client notices.
local http = require "support.http_client"
local load = require "support.load"
local proc = require "support.process"

local APP = load.SLOW_APP:gsub("port = tonumber",
  'reuseport = os.getenv "REUSE" ~= "no", port = tonumber')

local function start(port, env)
  env = env or {}
  env.PORT, env.LINGER = port, env.LINGER or "100ms"
  return proc.start { script = APP, env = env }
end

describe("a port with reuseport", function()
  it("loses no request when one of its two processes ends, again and again", function()
    local port = proc.free_port()
    local executed = {}
    local function next_one()
      executed[#executed + 1] = proc.temp_dir() .. "/executed"
      local app = start(port, { EXECUTED = executed[#executed] })
      app:wait_ready()
      return app
    end
    local apps = { next_one(), next_one() }
    local clients = load.start {
      port = port, keep_alive = 8, per_request = 16, post = 8, slow = 20,
    }
    for i = 1, tonumber(os.getenv "TIDE_RESTARTS") or 6 do
      local at = i % 2 + 1
      apps[at]:signal "TERM"
      assert.equal(0, (apps[at]:wait()))
      clients:check()
      apps[at] = next_one()
    end
    clients:finish()
    clients:check_executed(executed)
  end)

  it("gives no client to a process that starts", function()
    local port = proc.free_port()
    start(port):wait_ready()
    local clients = load.start { port = port, per_request = 8 }
    local slow = start(port, { SLOW = "700ms" })
    slow:wait_ready()
    clients:finish() -- its 503 would be a failure
  end)

  it("is refused to a process without it", function()
    local port = proc.free_port()
    start(port):wait_ready()
    local other = start(port, { REUSE = "no" })
    assert.equal(1, (other:wait()))
    assert.matches("address already in use", other:find_logs({ level = "error" })[1].msg)
    assert.equal(200, http.get(port, "/echo/1").status)
  end)
end)
