-- While Lua spins, or one call of C takes for ever, the watchdog says where it is, ends what can be
-- ended, and ends the process when that is asked for: in the startup, when ready, while draining,
-- and in the last phase.
local http = require "support.http_client"
local oob = require "support.oob"
local proc = require "support.process"

local SPIN = "while true do end"
-- Hours.
local FIND = "string.find(('a'):rep(40), ('a?'):rep(40) .. ('a'):rep(40) .. 'b')"

local function start(script, env)
  local app = proc.start { script = 'local tide = require "moontide"\n' .. script, env = env }
  return app, oob.connect(app)
end

local function assert_aborts(app, line)
  assert.equal("ok", line:ask("abort").status)
  local code, signal = app:wait()
  assert.equal(1, code)
  assert.is_nil(signal)
  app:wait_log { component = "watchdog", msg = "an abort was asked for", level = "warn" }
  app:wait_log { msg = "aborted over the out-of-band line; ending the process", level = "error" }
end

describe("a main chunk", function()
  it("that spins is shown with its line, and interrupted", function()
    local app, line = start("\n" .. SPIN)
    local where, text = line:runs "main chunk"
    assert.equal("starting", where.state)
    assert.matches("app.lua:3$", where.lua.at)
    assert.is_false(where.lua.in_c)
    assert.is_false(where.loop.waits)
    assert.equal("main chunk", where.running[1].what)
    assert.matches("Lua runs: main chunk at .*app.lua:3", text)
    assert.equal("interrupted", line:ask("interrupt").text)
    local code = app:wait()
    assert.equal(1, code)
    app:wait_log { level = "error", kind = "main chunk" }
  end)

  it("gets its answer also where the process ends of the interrupt at once", function()
    for _ = 1, 20 do
      local app, line = start("tide.config { manage = false }\n" .. SPIN)
      line:runs "main chunk"
      assert.equal("interrupted", line:ask("interrupt").text)
      assert.equal(1, (app:wait()))
    end
  end)

  it("in a call of C is told as that, and aborted", function()
    local app, line = start(FIND)
    local where = line:runs "main chunk"
    assert.is_true(where.lua.in_c)
    assert.is_nil(where.lua.at)
    local reply = line:ask "interrupt"
    assert.equal("error", reply.status)
    assert.matches("in a C call: cannot be interrupted", reply.error.message)
    assert_aborts(app, line)
  end)
end)

describe("a startup phase", function()
  it("in a call of C is shown with the phase, its task and the total", function()
    local app, line = start(([[
      tide.config { startup = { timeout = "1h" } }
      tide.startup:phase("db", { timeout = "1h" })
      tide.startup:task("db", "connect", function() %s end)]]):format(FIND))
    local where = line:runs "connect"
    assert.equal("db", where.phase)
    assert.equal("db/connect", where.running[1].what)
    assert.matches("app.lua:4$", where.running[1].site)
    local status = line:ask("status").value.status
    assert.equal("starting", status.state)
    assert.is_true(status.startup_left_ms > 3000000 and status.startup_left_ms <= 3600000)
    assert_aborts(app, line)
  end)
end)

describe("a ready process", function()
  local APP = [[
    tide.config { shutdown = { linger = 0 } }
    local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
    server:get("/spin/:id", function() while true do end end)
    server:get("/find", function() ]] .. FIND .. [[ end)
    server:get("/", function() return "served" end)]]

  it("serves again when a handler that spins was interrupted", function()
    local app, line = start(APP)
    app:wait_ready()
    local conn = assert(http.connect(app.port))
    conn:send_request("GET", "/spin/3")
    local where, text = line:runs "GET /spin/:id"
    assert.equal("ready", where.state)
    assert.matches("Lua runs: GET /spin/:id at .*app.lua:4", text)
    assert.equal(1, line:ask("status").value.status.in_flight)
    assert.equal("interrupted", line:ask("interrupt").text)
    assert.equal(500, conn:read_response().status)
    assert.equal("served", http.get(app.port, "/").body)
    app:wait_log { msg = "an interrupt was asked for", component = "watchdog", level = "warn" }
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)

  it("says that a handler is in a call of C, and for how long", function()
    local app, line = start(APP)
    app:wait_ready()
    http.connect(app.port):send_request("GET", "/find")
    local where = line:runs "GET /find"
    assert.is_true(where.lua.in_c)
    local later = line:where(function(w) return w.lua.ms >= where.lua.ms + 200 end)
    assert.is_true(later.loop.alive_ms >= 200)
    assert_aborts(app, line)
  end)
end)

describe("a drain", function()
  local ENV = { MOONTIDE_SHUTDOWN_TIMEOUT = "1h", MOONTIDE_SHUTDOWN__LINGER = "0" }
  local function draining(phase, code)
    local app, line = start(([[
      tide.shutdown:task(%q, "stuck", function() %s end)
      io.stdout:write "up" io.stdout:flush()
      tide.run_until_terminated()]]):format(phase, code), ENV)
    app:wait_stdout "up"
    app:signal "TERM"
    return app, line
  end

  it("whose task spins goes on when that is interrupted", function()
    local app, line = draining("service-stop", SPIN)
    local where = line:runs "stuck"
    assert.equal("draining", where.state)
    assert.equal("service-stop", where.phase)
    assert.equal("service-stop/stuck", where.running[1].what)
    local left = line:ask("status").value.status.shutdown_left_ms
    assert.is_true(left > 3500000 and left <= 3600000)
    assert.equal("interrupted", line:ask("interrupt").text)
    assert.equal(0, (app:wait()))
    app:wait_log { task = "stuck", outcome = "interrupted" }
    assert.is_nil(io.open(oob.path(app)))
  end)

  it("in its last phase, in a call of C, is shown and aborted", function()
    local app, line = draining("actor-system-terminate", FIND)
    local where = line:runs "stuck"
    assert.equal("actor-system-terminate", where.phase)
    assert.is_true(where.lua.in_c)
    assert_aborts(app, line)
    assert.is_nil(io.open(oob.path(app)))
  end)
end)
