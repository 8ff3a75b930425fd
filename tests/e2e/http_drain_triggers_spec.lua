-- Who asks makes no difference: a signal, the management listener and the script
-- start the same drain.
local http = require "support.http_client"
local http_app = require "support.http_app"
local loop = require "support.loop"

local SCRIPT = [[
  server:post("/stop", function() tide.shutdown:run("admin") return "stopping" end)
]]

local function post_shutdown(port, token)
  return http.post(port, "/lifecycle/shutdown", "",
    { headers = { Authorization = token and "Bearer " .. token } })
end

local TRIGGERS = {
  signal = function(app) app:signal "TERM" end,
  endpoint = function(app)
    app.signalled_at = loop.now()
    assert.equal(202, post_shutdown(app.manage_port, "secret").status)
  end,
  script = function(app)
    app.signalled_at = loop.now()
    assert.equal(200, http.post(app.port, "/stop", "").status)
  end,
}

-- What clients see of a drain, and what the log says.
local function trace(trigger)
  local app = http_app.start {
    linger = "300ms", script = SCRIPT, env = { MOONTIDE_MANAGE__TOKEN = "secret" },
  }
  local pooled, idle = assert(http.connect(app.port)), assert(http.connect(app.port))
  local slow = assert(http.connect(app.port))
  assert(pooled:request("GET", "/hello"))
  assert(idle:request("GET", "/hello"))
  slow:send_request("GET", "/slow?ms=700")
  trigger(app)
  app:wait_log { to = "draining" }
  local seen = {}
  local function see(response)
    seen[#seen + 1] = ("%d %s"):format(response.status, response.headers.connection)
  end
  see(http.get(app.manage_port, "/health/ready"))
  see(http.get(app.manage_port, "/health/live"))
  see(assert(pooled:request("GET", "/hello")))
  see(http.get(app.port, "/nope"))
  seen[#seen + 1] = idle:wait_close()
  seen[#seen + 1] = select(2, http.connect(app.port))
  see(assert(slow:read_response()))
  seen[#seen + 1] = slow:wait_close()
  assert.equal(0, (app:wait()))
  for _, record in ipairs(app:find_logs { component = "http" }) do
    seen[#seen + 1] = ("%s %s"):format(record.level, record.msg)
  end
  return seen
end

describe("a drain", function()
  it("is the same for a signal, the endpoint and the script", function()
    local want = trace(TRIGGERS.signal)
    assert.equal("503 close", want[1])
    assert.equal("eof", want[5])
    assert.same(want, trace(TRIGGERS.endpoint))
    assert.same(want, trace(TRIGGERS.script))
  end)
end)

describe("POST /lifecycle/shutdown", function()
  it("answers 202 and is not waited for", function()
    local app = http_app.start { linger = "0s", env = { MOONTIDE_MANAGE__TOKEN = "secret" } }
    local conn = assert(http.connect(app.manage_port))
    local response = assert(conn:request("POST", "/lifecycle/shutdown",
      { headers = { Authorization = "Bearer secret" } }))
    local asked = loop.now()
    assert.same({ 202, "close" }, { response.status, response.headers.connection })
    assert.equal(0, (app:wait())) -- with that connection open at our end
    assert.is_true(app.exited_at - asked < 1)
    assert.equal("eof", conn:wait_close())
  end)

  it("is not there without a token, and refuses a wrong one", function()
    local app = http_app.start {}
    assert.equal(404, post_shutdown(app.manage_port, "secret").status)
    app = http_app.start { env = { MOONTIDE_MANAGE__TOKEN = "secret" } }
    assert.equal(401, post_shutdown(app.manage_port, "wrong").status)
    assert.equal(401, post_shutdown(app.manage_port, nil).status)
    assert.is_true(app:is_running())
  end)
end)
