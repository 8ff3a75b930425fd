-- slowhttptest in its four modes against the real program: whoever else comes is served all the
-- time, and within a second.
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s" } }
local server = tide.http.listen {
  port = tonumber(os.getenv "PORT"),
  timeouts = { header = "2s", body_idle = "2s", write_stall = "2s", request_total = "6s" },
}
local page = ("moontide "):rep(8192)
server:get("/", function() return page end)
server:post("/", function(req) return tostring(#(req:body() or "")) end)
server:get("/hello", function() return "hello" end)
]]

local TOOL = "/usr/bin/slowhttptest"
local SECONDS, CLIENTS = 8, 300

local function missing()
  if proc.read_file(TOOL) then return nil end
  return "slowhttptest is not installed (scripts/setup.sh does)"
end

local function attack(app, flags)
  local argv = { "-u", ("http://127.0.0.1:%d/"):format(app.port), "-c", CLIENTS, "-r", 150,
    "-l", SECONDS, "-p", 2 }
  for _, flag in ipairs(flags) do argv[#argv + 1] = flag end
  return proc.start { program = TOOL, argv = argv, manage = false }
end

local function metric(app, name)
  local text = assert(http.get(app.manage_port, "/metrics")).body
  local sum = 0
  for value in text:gmatch("\n" .. name .. "%f[{ ]%S* (%d+)") do sum = sum + tonumber(value) end
  return sum
end

local MODES = {
  { "headers that never end", { "-H", "-i", "1", "-x", "24" }, slow = true },
  { "bodies that never end", { "-B", "-i", "1", "-s", "8192", "-x", "10" }, slow = true },
  { "ranges without number", { "-R", "-t", "GET", "-a", "10", "-b", "3000" } },
  { "answers that are never read", { "-X", "-n", "5", "-w", "1", "-y", "8", "-z", "1", "-k", "5" },
    slow = true },
}

describe("the service is there for others while a client sends or reads", function()
  for _, mode in ipairs(MODES) do
    it(mode[1], function()
      local refused = missing()
      if refused then return pending(refused) end
      local app = proc.start { script = SCRIPT }
      app:wait_ready()
      local tool = attack(app, mode[2])
      local asked, most, crowd = 0, 0, 0
      while tool:is_running() do
        local from = loop.now()
        local response, err = http.get(app.port, "/hello", { timeout = 5 })
        assert.equal(200, response and response.status, err)
        most = math.max(most, loop.now() - from)
        asked = asked + 1
        if asked % 5 == 0 then
          crowd = math.max(crowd, metric(app, "moontide_http_connections"))
        end
        loop.turn_for(0.05)
        assert.is_true(loop.now() - app.started_at < 40, "the tool does not end")
      end
      assert.is_true(asked > 20, asked .. " requests")
      -- Far beyond what a healthy process needs; a service that waits for the slow takes seconds.
      assert.is_true(most < 1, ("%.2f s for an answer"):format(most))
      if mode.slow then
        assert.is_true(crowd > 100, crowd .. " connections at most:\n" .. tool:stdout())
        assert.is_true(metric(app, "moontide_http_timeouts_total") > 100, "none was cut off")
      end
      app:signal "TERM"
      assert.equal(0, (app:wait()))
    end)
  end
end)
