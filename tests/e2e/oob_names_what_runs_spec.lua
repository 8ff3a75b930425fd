-- Whatever of Lua's runs has a name in `where` and in the watchdog's dump: a task by its own or its
-- starter's, a request by its route, callbacks by their kind.
local console = require "support.console"
local http = require "support.http_client"
local oob = require "support.oob"
local proc = require "support.process"

local SPIN = "while true do end"

local function start(script, env)
  local app = proc.start { script = 'local tide = require "moontide"\n' .. script, env = env }
  return app, oob.connect(app)
end

-- As it is shown; then the process ends by what it is in.
local function assert_named(name, script)
  local app, line = start(script)
  local where = line:runs(name)
  assert.matches("app.lua:%d+$", where.lua.at)
  line:ask "abort"
  assert.equal(1, (app:wait()))
  app:wait_log { msg = "Lua was running", what = where.lua.what, component = "watchdog" }
end

describe("where names", function()
  it("a root task", function()
    assert_named("^a root task$", "tide.root:spawn(function() while true do end end)")
  end)

  it("a root task that was given a name", function()
    assert_named("^poller$",
      "tide.root:start({ name = 'poller' }, function() while true do end end)")
  end)

  it("a task by whoever spawned it", function()
    assert_named("^a task of connect$", [[
      tide.startup:phase("db")
      tide.startup:task("db", "connect", function()
        tide.spawn(function() while true do end end):await()
      end)]])
  end)

  it("a task of a phase", function()
    assert_named("^connect$",
      "tide.startup:phase('db')" ..
      "tide.startup:task('db', 'connect', function() while true do end end)")
  end)

  it("a worker", function()
    assert_named("^worker outbox$", "tide.worker('outbox', function() while true do end end)")
  end)

  it("a readiness check", function()
    assert_named("check db", [[
      tide.check("db", { timeout = "1h" }, function() while true do end end)
      tide.run_until_terminated()]])
  end)

  it("a callback of luv", function()
    assert_named("^luv callback$", [[
      local timer = require("luv").new_timer()
      timer:start(10, 0, function() while true do end end)
      tide.run_until_terminated()]])
  end)

  it("a signal handler", function()
    local app, line = start [[
      tide.on_signal("SIGUSR2", function() while true do end end)
      io.stdout:write "up" io.stdout:flush()
      tide.run_until_terminated()]]
    app:wait_stdout "up"
    app:signal "USR2"
    line:runs "SIGUSR2"
    line:ask "abort"
    assert.equal(1, (app:wait()))
  end)

  it("a handler that goes on after an await", function()
    local app, line = start [[
      local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
      server:post("/orders/:id", function(req) tide.sleep(0.01) while true do end end)]]
    app:wait_ready()
    http.connect(app.port):send_request("POST", "/orders/7")
    line:runs "^POST /orders/:id$"
    line:ask "abort"
    assert.equal(1, (app:wait()))
  end)

  it("an evaluation of the console that spins where it cannot yield", function()
    local app, line = start [[
      tide.http.listen { port = tonumber(os.getenv "PORT") }]]
    app:wait_ready()
    local client = console.connect(app)
    client:send { type = "eval", source = "string.gsub('x', 'x', function() " .. SPIN .. " end)" }
    line:runs "eval"
    line:ask "abort"
    assert.equal(1, (app:wait()))
    client:close()
  end)
end)

describe("the dump of a total", function()
  it("names what was in a call of C", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.startup:phase("db")
      tide.startup:task("db", "connect", function()
        string.find(("a"):rep(40), ("a?"):rep(40) .. ("a"):rep(40) .. "b")
      end)]], env = { MOONTIDE_STARTUP_TIMEOUT = "700ms" } }
    assert.equal(1, (app:wait()))
    app:wait_log { msg = "the startup total has passed; ending the process", name = "app",
      phase = "db" }
    app:wait_log { msg = "Lua was running", what = "connect" }
    app:wait_log { msg = "still running", what = "db/connect" }
  end)
end)
