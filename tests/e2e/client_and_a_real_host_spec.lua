-- The commands that speak to a running process, and a process that runs.
local http = require "support.http_client"
local json = require "cjson"
local loop = require "support.loop"
local proc = require "support.process"
local pty = require "support.pty"

local APP = [[
local tide = require "moontide"
tide.config { name = "orders", shutdown = { linger = 0 } }
local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT") }
server:get("/", function() return "hello" end)
function count_to(n) for i = 1, n do print(i) end return n end
]]

-- A command for this process; its RUNTIME_DIRECTORY is the app's.
local function run(app, ...)
  local code, out, err = proc.run { argv = { ... }, manage = false,
    env = { RUNTIME_DIRECTORY = app.dir } }
  return code, out, err
end

local function start(script, options)
  options = options or {}
  options.script = script or APP
  local app = proc.start(options)
  require("support.console").socket(app)
  return app
end

describe("a running process", function()
  it("is evaluated in: by name, by number, as the only one", function()
    local app = start()
    for _, target in ipairs { "orders", tostring(app.pid) } do
      assert.same({ 0, "1\n2\n2\n", "" }, { run(app, "eval", target, "count_to(2)") })
    end
    assert.same({ 0, "42\n", "" }, { run(app, "eval", "6 * 7") })
    local code, out, err = run(app, "eval", "error 'no'")
    assert.same({ 1, "" }, { code, out })
    assert.matches("1: no\nstack traceback:", err)
  end)

  it("serves while an evaluation loops, which SIGINT ends with 130", function()
    local app = start()
    app:wait_ready()
    local client = proc.start { argv = { "eval", "print 'in' while true do end" }, manage = false,
      env = { RUNTIME_DIRECTORY = app.dir } }
    client:wait_stdout "(in)"
    for _ = 1, 5 do
      assert.equal("hello", http.get(app.port, "/", { timeout = 5 }).body)
    end
    client:signal "INT"
    assert.equal(130, client:wait())
    assert.equal("hello", http.get(app.port, "/", { timeout = 5 }).body)
    assert.same({ 0, "1\n", "" }, { run(app, "eval", "1") })
  end)

  it("ends an evaluation whose client goes", function()
    local app = start()
    local client = proc.start { argv = { "eval", "print 'in' while true do end" }, manage = false,
      env = { RUNTIME_DIRECTORY = app.dir } }
    client:wait_stdout "(in)"
    client:signal "KILL"
    client:wait()
    local ended = loop.try(function()
      local _, out = run(app, "eval", "--json", "#tasks()")
      return out and not out:find "while true"
    end, 10)
    assert.is_truthy(ended)
  end)

  it("exits 124 for an evaluation past its deadline, and goes on", function()
    local app = start()
    assert.equal(124, (run(app, "eval", "--timeout", "200ms", "while true do end")))
    assert.same({ 0, "1\n", "" }, { run(app, "eval", "1") })
  end)

  it("has a console with completion, values, multi-line input and Ctrl-C", function()
    local app = start()
    local person = pty.start { args = { "console", "orders" }, dir = app.dir,
      env = { XDG_STATE_HOME = app.dir } }
    person:at_prompt()
    person:type "count_\t(2)\r"
    person:see "orders> count_to%(2%)\n1\n2\n2\norders>$"
    person:type "for i = 1, 2 do\r"
    person:at_prompt ">> "
    person:type "print(i * 10)\rend\r"
    person:see "\n10\n20\norders>$"
    person:type "while true do end\r"
    person:see "while true do end\n"
    person:type "\3"
    person:at_prompt()
    person:type "_\r\4" -- what the last value was
    person:see "orders> _\n2\norders>"
    assert.equal(0, person:wait())
  end)

  it("tells a console that it drains, and its report, and the console ends with 0", function()
    local app = start()
    local person = pty.start { args = { "console", "orders" }, dir = app.dir,
      env = { XDG_STATE_HOME = app.dir } }
    person:at_prompt()
    app:signal "TERM"
    person:see "orders is draining"
    assert.equal(0, person:wait())
    assert.equal(0, (app:wait()))
  end)

  it("is drained with a reason, which is in its log", function()
    local app = start()
    local code, out = run(app, "drain", "orders", "--dry")
    assert.equal(0, code)
    assert.matches("service%-unbind", out)
    assert.equal(0, (run(app, "drain", "--reason", "a new kernel")))
    assert.equal(0, (app:wait()))
    app:wait_log(function(record) return record.line:find("a new kernel", 1, true) end)
  end)

  it("is tailed, by somebody who sees its end", function()
    local app = start()
    local client = proc.start { argv = { "tail" }, manage = false,
      env = { RUNTIME_DIRECTORY = app.dir } }
    -- Until the tail has begun its records are not for it.
    loop.wait(function()
      run(app, "eval", "require('moontide').log.info('hello', { n = 1 })")
      return client:stdout():find "info app hello n=1"
    end, 10, "the record")
    app:signal "TERM"
    assert.equal(0, client:wait())
  end)
end)

describe("a process whose loop is stuck", function()
  -- One call of C that nothing can end in time.
  local STUCK = [[
local tide = require "moontide"
tide.config { name = "orders" }
tide.http.listen { port = tonumber(os.getenv "PORT") }
tide.spawn(function()
  tide.sleep "300ms"
  local text = ("a"):rep(32)
  text:find(("a?"):rep(32) .. text)
end)
]]

  it("is explained by its watchdog, to who waits in vain: 124", function()
    local app = start(STUCK)
    app:wait_ready()
    loop.turn_for(0.5)
    local code, out, err = run(app, "status", "--timeout", "3s")
    assert.equal(124, code)
    assert.matches("^ready for .*\nthe loop has been busy", out)
    assert.matches("the loop is stuck for %d%.%d s", err)
    assert.matches("in a call of C", err)
    app:kill()
  end)
end)

describe("moontide status", function()
  it("shows one screen, or JSON", function()
    local app = start()
    app:wait_ready()
    local code, out = run(app, "status")
    assert.equal(0, code)
    assert.matches("^orders ready\n  pid " .. app.pid, out)
    assert.is_true(select(2, out:gsub("\n", "")) <= 24)
    code, out = run(app, "status", "orders", "--json")
    assert.equal(0, code)
    local status = json.decode(out)
    assert.same({ "orders", app.pid, "ready" }, { status.name, status.pid, status.state })
  end)

  local SLOW = [[
local tide = require "moontide"
tide.config { name = "orders", shutdown = { linger = 0 } }
tide.startup:phase "db"
tide.startup:task("db", "connect", function() tide.sleep(os.getenv "STARTUP" or "500ms") end)
tide.http.listen { port = tonumber(os.getenv "PORT") }
]]

  it("waits for a process that is not there yet, until it is ready", function()
    local dir = proc.temp_dir()
    local client = proc.start { argv = { "status", "orders", "--wait=ready" }, manage = false,
      env = { RUNTIME_DIRECTORY = dir } }
    loop.turn_for(0.3) -- it looks in vain meanwhile
    assert.is_true(client:is_running())
    local app = proc.start { script = SLOW, dir = dir }
    assert.equal(0, client:wait())
    assert.matches("^orders ready\n", client:stdout())
    assert.same({}, app:find_logs { level = "error" })
  end)

  it("gives up in time: 124, and says how far it was", function()
    local dir = proc.temp_dir()
    local code, out, err = proc.run { manage = false, env = { RUNTIME_DIRECTORY = dir },
      argv = { "status", "orders", "--wait=ready", "--timeout=200ms" } }
    assert.same({ 124, "" }, { code, out })
    assert.matches('not ready after 200ms: no live process "orders"', err, 1, true)
    local app = proc.start { script = SLOW, dir = dir, env = { STARTUP = "30s" } }
    require("support.console").socket(app)
    code, out, err = run(app, "status", "orders", "--wait=ready", "--timeout=300ms")
    assert.same({ 124, "" }, { code, out })
    assert.matches("not ready after 300ms: process " .. app.pid .. " is starting", err, 1, true)
  end)

  it("waits for the end", function()
    local app = start()
    app:wait_ready()
    local client = proc.start { argv = { "status", "--wait", "stopped" }, manage = false,
      env = { RUNTIME_DIRECTORY = app.dir } }
    loop.turn_for(0.2)
    assert.is_true(client:is_running())
    app:signal "TERM"
    assert.equal(0, client:wait())
    assert.equal(0, (run(app, "status", "--wait", "stopped"))) -- nobody is there
    app:wait()
  end)

  it("waits for the successor of one that drains", function()
    local app = start((SLOW:gsub("tide%.http", [[
tide.shutdown:task(tide.phases.ServiceStop, "slow", function() tide.sleep "1500ms" end)
%0]])))
    app:wait_ready()
    app:signal "TERM"
    app:wait_log { to = "draining" }
    local client = proc.start { argv = { "status", "orders", "--wait=ready" }, manage = false,
      env = { RUNTIME_DIRECTORY = app.dir } }
    loop.turn_for(0.2)
    assert.is_true(client:is_running())
    local successor = proc.start { script = APP, dir = app.dir }
    assert.equal(0, client:wait())
    assert.matches("pid " .. successor.pid, client:stdout())
  end)

  it("is left with 130 at SIGINT, whatever it waits for", function()
    local app = start()
    local waits = { { "status", "--wait=draining" }, { "status", "nobody", "--wait=ready" } }
    for _, argv in ipairs(waits) do
      local client = proc.start { argv = argv, manage = false,
        env = { RUNTIME_DIRECTORY = app.dir } }
      loop.turn_for(0.3) -- it waits by now; before, the host's own handler is asked to stop it
      client:signal "INT"
      assert.equal(130, client:wait())
    end
  end)
end)
