-- What somebody on call does to a pipeline that hangs, over the real socket: skip it, give it more
-- time, run a check again. The process goes on by itself.
local console = require "support.console"
local http = require "support.http_client"
local proc = require "support.process"

local HEAD = [[
local tide = require "moontide"
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
server:get("/slow", function() tide.sleep(1.5) return "slow" end)
local function hang() tide.sleep(25) end
]]

local app, client

local function start(script, config)
  app = proc.start { script = HEAD .. ("tide.config { shutdown = { linger = 0, %s } }\n"):format(
    config or "") .. script }
  client = console.connect(app)
end

local function drain()
  app:wait_ready()
  assert.equal("ok", client:request({ type = "drain", reason = "deploy" }).status)
end

describe("the console", function()
  after_each(function() client:close() end)

  it("skips a task that hangs, and the process ends in order", function()
    start "tide.shutdown:task('service-stop', 'flush', hang)"
    drain()
    app:wait_log { msg = "shutdown phase ok", phase = "service-unbind" }
    local reply = client:eval "skip('flush', 'the disk is gone')"
    assert.equal("service-stop/flush of the shutdown is skipped: it is told to end", reply.text)
    assert.equal(0, (app:wait()))
    local record = app:wait_log { msg = "shutdown task skipped", task = "flush" }
    assert.matches("the disk is gone", record.why)
    assert.equal("skip", app:wait_log { component = "console", msg = "skip" }.msg)
    local code, report = proc.run { argv = { "report", app.dir .. "/state/reports" } }
    assert.equal(0, code)
    assert.matches("\ndone at the console:\n  %d+:%d+:%d+Z drain, by %S+ of user %d+: deploy\n"
      .. "  %d+:%d+:%d+Z skip service%-stop/flush, by %S+ of user %d+: the disk is gone\n", report)
  end)

  it("skips a step of the startup that hangs, and the process is ready", function()
    start "tide.startup:phase('cache', { timeout = '20s' }, hang)"
    assert.equal("starting", client:hello().state)
    assert.equal("ok", client:eval("skip('cache', 'it can be cold')").status)
    assert.equal("ready", client:event("state").state)
  end)

  it("skips the drain: what it waited for is ended by force, and that is the exit code", function()
    start("", "forced_exit_code = 7")
    app:wait_ready()
    local slow = assert(http.connect(app.port))
    slow:send_request("GET", "/slow")
    app:wait_log(function() -- the request is in flight
      return client:request({ type = "drain", dry = true }).value.plan.requests[1].requests == 1
    end)
    drain()
    assert.equal("ok", client:eval("skip('service-requests-done', 'no time')").status)
    assert.equal(7, (app:wait()))
  end)

  it("gives a drain more time, which has a limit of its own", function()
    start("", "drain = '500ms'")
    app:wait_ready()
    local slow = assert(http.connect(app.port))
    slow:send_request("GET", "/slow")
    app:wait_log(function()
      return client:request({ type = "drain", dry = true }).value.plan.requests[1].requests == 1
    end)
    drain()
    app:wait_log { msg = "shutdown phase ok", phase = "service-unbind" }
    local reply = client:eval "extend('service-requests-done', '4s', 'a large download')"
    assert.equal("ok", reply.status)
    assert.matches("^phase service%-requests%-done has 34s, 4s more: 4s that the total "
      .. "had to spare", reply.text)
    assert.equal("slow", slow:read_response().body)
    assert.equal(0, (app:wait()))
  end)

  it("runs a check now", function()
    start [[
      up = false
      tide.check("db", { every = 60 }, function() return up, "no route" end)
    ]]
    app:wait_log { component = "readiness", check = "db" }
    assert.matches("check db is not ok after .*: no route", client:eval("retry('db', 'look')").text)
    client:eval "_G.up = true"
    assert.matches("^check db is ok after", client:eval("retry('db', 'the network is back')").text)
    app:wait_ready()
  end)

  it("says in a sentence what cannot be done, and nothing happens", function()
    start "tide.shutdown:task('service-stop', 'flush', hang)"
    app:wait_ready()
    for source, message in pairs {
      ["skip('flush', 'why')"] = "no pipeline runs: the process is ready",
      ["extend('service-stop', '5s', 'why')"] = "no pipeline runs: the process is ready",
      ["retry('db')"] = "unknown check \"db\"; there are none",
      ["trace('os.time')"] = "a limit is wanted",
      ["watch()"] = "an expression is wanted",
    } do
      local reply = client:eval(source)
      assert.equal("error", reply.status)
      assert.matches(message, reply.error.message, 1, true)
    end
    drain()
    assert.matches("a reason is wanted.*skip%(", client:eval("skip('flush')").error.message)
    assert.matches("did you mean \"flush\"", client:eval("skip('flsh', 'why')").error.message)
    client:eval "skip('flush', 'now in earnest')"
    assert.equal(0, (app:wait()))
  end)
end)
