-- Whoever dies in the middle of a takeover, and whenever: one of the two has the queue and serves
-- it.
local http = require "support.http_client"
local load = require "support.load"
local loop = require "support.loop"
local takeover = require "support.takeover"

local service, old

local function following(slow)
  local new = service:start { flags = { "--takeover" }, env = { SLOW = slow } }
  new:wait_log { msg = "following another process" }
  return new
end

local function serves(app)
  assert.is_true(app:is_running())
  assert.equal("7", http.get(app.port, "/echo/7").body)
  assert.equal(200, http.get(app.manage_port, "/health/ready").status)
end

describe("a takeover", function()
  before_each(function()
    service = takeover.service { script = load.SLOW_APP }
    old = service:start_ready()
  end)

  it("goes on when the old process dies: its clients wait for the new one", function()
    local new = following "1500ms"
    old:signal "KILL"
    old:wait()
    local conn = assert(http.connect(service.port)) -- not refused
    conn:send_request("GET", "/echo/1")
    local record = new:wait_log { component = "takeover", level = "warn" }
    assert.equal(old.pid, record.pid)
    assert.equal("1", assert(conn:read_response()).body)
    new:wait_log { msg = "ready" }
    serves(new)
    new:signal "TERM" -- the sockets are its own: the drain closes them in order
    assert.equal(0, (new:wait()))
    assert.same({}, new:find_logs { level = "error" })
  end)

  it("goes on when the old process dies at the last moment", function()
    local new = following "700ms"
    old:signal "STOP" -- so that it cannot say go
    new:wait_log { msg = "startup phase ok", phase = "slow" }
    old:signal "KILL"
    old:wait()
    new:wait_log { msg = "ready" }
    serves(new)
  end)

  it("ends when the old process hangs at the last moment", function()
    local new = following "700ms"
    old:signal "STOP"
    assert.equal(69, (new:wait(20)))
    assert.is_truthy(new:find_logs(("takeover: process %d does not answer"):format(old.pid))[1])
    old:signal "CONT"
    serves(old)
    service:follow()
    assert.equal(0, (old:wait()))
  end)

  it("leaves the old process when the new one is killed, and loses nothing", function()
    local clients = load.start {
      port = service.port, keep_alive = 4, per_request = 4, post = 4, pipelined = 1,
    }
    for _ = 1, 3 do
      local new = following "10s"
      new:signal "KILL"
      new:wait()
      local record = old:wait_log { component = "takeover", level = "warn", pid = new.pid }
      assert.matches("it went away before it was ready; this process serves on", record.msg)
      clients:check()
    end
    serves(old)
    service:follow()
    assert.equal(0, (old:wait()))
    clients:finish()
  end)

  it("is withdrawn by a SIGTERM, and both end", function()
    local new = following "10s"
    old:signal "TERM"
    assert.equal(69, (new:wait()))
    assert.is_truthy(new:find_logs("the other process has withdrawn its sockets")[1])
    assert.equal(0, (old:wait()))
    assert.is_truthy(old:find_logs("it was withdrawn: the process shuts down")[1])
    local closed = old:find_logs({ msg = "listener closed", listener = "api" })[1]
    assert.is_truthy(closed)
    assert.equal("ECONNREFUSED", select(2, http.connect(service.port)))
  end)

  it("by a new process that gets a SIGTERM leaves the old one", function()
    local new = following "10s"
    new:signal "TERM"
    assert.equal(0, (new:wait()))
    assert.matches("SIGTERM", old:wait_log { component = "takeover", level = "warn" }.why)
    serves(old)
  end)

  it("takes back what a successor was told to accept from and did not", function()
    local peer, offer = service:ask(old)
    assert.equal(2, #offer.listeners)
    peer:send { id = 2, type = "ready", adopted = { 1, 2 } }
    assert.equal("go", peer:receive().type)
    local conn = assert(http.connect(service.port)) -- nobody accepts now; nobody is refused
    conn:send_request("GET", "/echo/2")
    peer:close()
    assert.equal("2", assert(conn:read_response()).body)
    serves(old)
    service:follow()
    assert.equal(0, (old:wait()))
  end)

  it("of which a successor says nothing more is served by both, and gated by none", function()
    local peer = service:ask(old)
    peer:send { id = 2, type = "ready", adopted = { 1, 2 } }
    assert.equal("go", peer:receive().type)
    local conn = assert(http.connect(service.port))
    conn:send_request("GET", "/echo/3")
    old:wait_log "told to go on and does not answer"
    assert.equal("3", assert(conn:read_response()).body)
    serves(old)
    peer:send { type = "done" } -- late, but not never
    old:wait_log { msg = "handed over" }
    assert.equal(0, (old:wait()))
    -- It has only let go: this test holds the sockets now, and the queue is open.
    assert.is_truthy(http.connect(service.port))
    peer:close()
    loop.wait(function() return select(2, http.connect(service.port)) == "ECONNREFUSED" end, 10)
  end)

  it("that is being decided survives a SIGTERM of the old process", function()
    local peer = service:ask(old)
    peer:send { id = 2, type = "ready", adopted = { 1, 2 } }
    assert.equal("go", peer:receive().type)
    old:signal "TERM"
    assert.equal(0, (old:wait()))
    assert.is_truthy(http.connect(service.port)) -- not gated: it is the successor's
    peer:close()
  end)
end)
