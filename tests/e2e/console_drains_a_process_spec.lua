-- A drain that somebody asks for at the console goes through the one pipeline: its hooks await to
-- their end, whoever else asks meanwhile, and the exit code is right.
local console = require "support.console"
local http = require "support.http_client"
local json = require "moontide.json"
local loop = require "support.loop"
local proc = require "support.process"
local uv = require "luv"

local HEAD = [[
local tide = require "moontide"
tide.config { shutdown = { linger = 0 } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
server:get("/", function() return "served" end)
server:get("/slow", function() tide.sleep(1.5) return "slow" end)
tide.shutdown:on("marker", function(reason)
  tide.sleep(0.05)
  io.stdout:write("hook ", tostring(reason), "\n")
  io.stdout:flush()
end)
]]

local function start(script, env)
  local app = proc.start { script = HEAD .. (script or ""), env = env }
  return app, console.connect(app)
end

local function report_of(app)
  local directory = app.dir .. "/state/reports"
  local name = uv.fs_scandir_next(assert(uv.fs_scandir(directory)))
  return json.decode(proc.read_file(directory .. "/" .. name))
end

-- Each ends the process; `done`: the status that the client hears, when it hears one.
---@type table<string, { ask: fun(client: table, app: table), code: integer|nil, reason: string }>
local ways = {
  ["the command"] = {
    ask = function(client)
      local reply = client:eval "drain { reason = 'deploy of 1.2' }"
      assert.equal("ok", reply.status)
      assert.matches("the shutdown has begun: %d+ of 13 phases have tasks", reply.text)
    end, reason = "console %(from pid %d+ deploy of 1.2%)",
  },
  ["the request"] = {
    ask = function(client)
      local reply = client:request { type = "drain", reason = "deploy of 1.2" }
      assert.equal("ok", reply.status)
      assert.equal(13, #reply.value.plan.phases)
      assert.is_true(reply.value.plan.left > 0)
    end, reason = "console %(from pid %d+ deploy of 1.2%)",
  },
  ["both, and a signal"] = {
    ask = function(client, app)
      client:send { type = "eval", source = "drain { reason = 'first' }" }
      client:send { type = "drain", reason = "second" }
      client:request { type = "drain", dry = true }
      app:signal "TERM"
    end, reason = "console %(from pid %d+ %w+%)",
  },
  ["a client that leaves at once"] = {
    ask = function(client)
      client:send { type = "drain", reason = "gone" }
      client:close()
    end, reason = "console %(from pid %d+ gone%)",
  },
  ["an evaluation that goes on for ever"] = {
    ask = function(client)
      client:send { type = "eval", source = "drain { reason = 'x' } while true do end" }
    end, reason = "console %(from pid %d+ x%)",
  },
  ["an evaluation that awaits the end"] = {
    ask = function(client)
      client:send { type = "eval", source = "drain { reason = 'x' } tide.sleep(20)" }
    end, reason = "console %(from pid %d+ x%)",
  },
  ["os.exit with a code"] = {
    ask = function(client) client:send { type = "eval", source = "os.exit(3)" } end, code = 3,
    reason = "console %(.*os.exit%(3%) at the console%)",
  },
}

describe("the shutdown pipeline runs at a drain by", function()
  for name, way in pairs(ways) do
    it(name, function()
      local app, client = start()
      app:wait_ready()
      way.ask(client, app)
      local code, signal = app:wait()
      assert.equal(way.code or 0, code)
      assert.is_nil(signal)
      assert.matches("^hook " .. way.reason .. "\n$", app:stdout())
      client:close()
    end)
  end

  it("nc", function()
    local app, client = start()
    app:wait_ready()
    client:send "drain { reason = 'by hand' }\n"
    client:expect "the shutdown has begun"
    assert.equal(0, (app:wait()))
    assert.matches("^hook console", app:stdout())
    client:close()
  end)

  it("who looks into a startup that hangs", function()
    local app, client = start "tide.startup:phase('db', function() tide.sleep(60) end)"
    assert.equal("ok", client:request({ type = "drain", reason = "it never rises" }).status)
    assert.equal(0, (app:wait()))
    assert.matches("^hook console", app:stdout())
    client:close()
  end)
end)

describe("a drain at the console", function()
  it("has no effect with dry, and says what it would wait for", function()
    local app, client = start "tide.shutdown:task('service-stop', 'flush', function() end)"
    app:wait_ready()
    local slow = assert(http.connect(app.port))
    slow:send_request("GET", "/slow")
    local reply
    loop.wait(function() -- until the request has been read
      reply = client:request { type = "drain", dry = true }
      return reply.value.plan.requests[1].requests > 0
    end, 5, "a request in flight")
    assert.equal("ok", reply.status)
    assert.matches("dry run, nothing was begun", reply.text)
    assert.matches("\nservice%-stop +5s +flush", reply.text)
    assert.matches("it would wait for, now:\n  .*: 1 request in flight", reply.text)
    assert.equal(1, reply.value.plan.requests[1].requests)
    assert.equal("ready", client:hello().state)
    assert.equal("slow", slow:read_response().body)
    client:close()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)

  it("stands in the log, with who asked, and in the report", function()
    local app, client = start()
    app:wait_ready()
    client:request { type = "drain", reason = "deploy of 1.2" }
    client:close()
    app:wait()
    local record = app:wait_log { component = "console", msg = "drain", text = "deploy of 1.2" }
    assert.equal(uv.getuid(), record.uid)
    assert.equal("console", app:wait_log { msg = "stopped" }.reason)
    local report = report_of(app)
    assert.equal("console", report.reason.kind)
    assert.equal("drain", report.console[1].action)
    assert.equal("deploy of 1.2", report.console[1].reason)
  end)

  it("asks for a reason", function()
    local app, client = start()
    app:wait_ready()
    local reply = client:request { type = "drain" }
    assert.equal("error", reply.status)
    assert.matches("a reason is wanted", reply.error.message)
    reply = client:eval "drain()"
    assert.equal("error", reply.status)
    assert.matches("a table is wanted: drain { reason", reply.error.message)
    assert.equal("ready", client:hello().state)
    client:close()
  end)
end)
