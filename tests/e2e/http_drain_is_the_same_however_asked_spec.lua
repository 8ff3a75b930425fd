-- Signal, request, script: each way to ask for the shutdown goes through the same steps, so that
-- none of them forgets what clients are told (envoyproxy/envoy#47042).
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local SCRIPT = [[
  local tide = require "moontide"
  tide.config { shutdown = { linger = "400ms", drain = "10s" } }
  local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
  server:get("/hello", function() return "hello" end)
  server:get("/slow", function() tide.sleep(0.8) return "slow" end)
  server:get("/fails", function() error "on purpose" end)
  server:get("/empty", function() end)
  server:get("/known", function() return 304, nil end)
  server:get("/stop", function() tide.shutdown:run("admin") return "stopping" end)
]]

local function start()
  local app = proc.start { script = SCRIPT, env = { MOONTIDE_MANAGE__TOKEN = "secret" } }
  app:wait_ready()
  return app
end

local ways = {
  ["a signal"] = function(app) app:signal "TERM" end,
  ["a request of the management listener"] = function(app)
    local conn = assert(http.connect(app.manage_port))
    -- It is answered at once, and the drain does not wait for it.
    assert.equal(202, assert(conn:request("POST", "/lifecycle/shutdown",
      { headers = { Authorization = "Bearer secret" } })).status)
  end,
  ["a handler of the script"] = function(app)
    local response = assert(http.get(app.port, "/stop"))
    assert.equal("stopping", response.body)
    assert.equal("close", response.headers.connection)
  end,
}

local expected = {
  { "GET", "/hello", 200 }, { "HEAD", "/hello", 200 }, { "GET", "/nope", 404 },
  { "DELETE", "/hello", 405 }, { "GET", "/fails", 500 }, { "GET", "/empty", 204 },
  { "GET", "/known", 304 },
}

describe("a drain that is asked for by", function()
  for name, ask in pairs(ways) do
    it(name .. " says close on each answer, serves what runs, refuses, and ends", function()
      local app = start()
      local slow, idle = assert(http.connect(app.port)), assert(http.connect(app.port))
      assert(idle:request("GET", "/hello"))
      slow:send_request("GET", "/slow")
      local asked_at = loop.now()
      ask(app)
      app:wait_log { to = "draining" }
      assert.equal(503, http.get(app.manage_port, "/health/ready").status)
      for _, e in ipairs(expected) do
        local response = assert(http.request(e[1], app.port, e[2]))
        assert.equal(e[3], response.status, e[2])
        assert.equal("close", response.headers.connection, e[1] .. " " .. e[2])
      end
      local response = assert(slow:read_response())
      assert.equal("slow", response.body)
      assert.equal("close", response.headers.connection)
      assert.equal("eof", slow:wait_close())
      assert.equal("eof", idle:wait_close())
      assert.equal(0, (app:wait()))
      local steps = {}
      for _, record in ipairs(app:logs()) do
        if record.to then steps[#steps + 1] = record.to end
      end
      assert.same({ "ready", "draining", "stopped" }, steps)
      local closed = app:find_logs { msg = "listener closed", listener = "http" }
      assert.equal(1, #closed)
      -- 800 ms of the slow handler; the rest is a bound for a busy machine
      assert.is_true(app.exited_at - asked_at < 3)
    end)
  end
end)
