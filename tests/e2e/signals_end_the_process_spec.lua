-- The "signals" cases of tests/data/pipeline-cases.json, and the reports about signals that were
-- lost, with real signals.
local loop = require "support.loop"
local proc = require "support.process"

local PHASES = [[
local tide = require "moontide"
local function say(text) io.stdout:write(text, "\n") io.stdout:flush() end
for _, phase in ipairs { "service-unbind", "service-stop", "cluster-leave",
  "before-actor-system-terminate" } do
  tide.shutdown:task(phase, "say", function() say(phase) end)
end
]]

describe("a stop signal", function()
  it("S01: is waited for by a script that idles, and runs the phases in order", function()
    local app = proc.start { script = PHASES .. "tide.run_until_terminated()" }
    app:wait_ready()
    app:signal "TERM"
    local code, signal = app:wait()
    assert.equal(0, code)
    assert.is_nil(signal)
    assert.equal("service-unbind\nservice-stop\ncluster-leave\nbefore-actor-system-terminate\n",
      app:stdout())
  end)

  it("S03: names itself and its sender to the tasks and in the log", function()
    for _, name in ipairs { "TERM", "INT" } do
      local app = proc.start { script = [[
        local tide = require "moontide"
        tide.shutdown:on("say", function(reason)
          io.stdout:write(reason.signal, " ", reason.pid > 0 and "from somebody" or "?", "\n")
        end)
        tide.run_until_terminated()]] }
      app:wait_ready()
      app:signal(name)
      assert.equal(0, (app:wait()))
      assert.equal(("SIG%s from somebody\n"):format(name), app:stdout())
      local record = app:wait_log { reason = "process-terminate", signal = "SIG" .. name }
      assert.is_true(record.pid > 0)
    end
  end)

  it("S03: exits 1 after a shutdown that itself failed", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.shutdown:phase("strict", { after = "service-stop", recover = false })
      tide.shutdown:task("strict", "bad", function() error "boom" end)
      tide.run_until_terminated()]] }
    app:wait_ready()
    app:signal "TERM"
    assert.equal(1, (app:wait()))
    app:wait_log { level = "error", task = "bad" }
  end)

  it("ends the process exactly when its last task has ended", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.shutdown:task("service-stop", "second", function() tide.sleep(1) end)
      tide.run_until_terminated()]] }
    app:wait_ready()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    local record = app:wait_log { task = "second" }
    assert.is_true(record.duration_ms >= 1000)
    -- The rest is what a busy machine takes to end a process.
    assert.is_true(record.duration_ms < 2000)
  end)

  it("is heard after the startup total would have been over", function()
    local app = proc.start {
      script = [[require("moontide").run_until_terminated()]],
      env = { MOONTIDE_STARTUP_TIMEOUT = "1s" },
    }
    app:wait_ready()
    loop.turn_for(1.2)
    assert.is_true(app:is_running())
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)

  it("rolls back what had started when it comes in the middle of startup", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      local function say(text) io.stdout:write(text, "\n") io.stdout:flush() end
      tide.component("lock", { start = function() say "taken" end,
        stop = function() say "released" end })
      tide.component("slow", { needs = "lock", start = function() tide.sleep(30) end,
        stop = function() say "never" end })]] }
    app:wait_stdout "taken"
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.equal("taken\nreleased\n", app:stdout())
  end)
end)

describe("SIGTERM while a task of the script", function()
  for what, body in pairs {
    ["words its cancellation anew"] =
      "local _, err = pcall(tide.sleep, 60) error('loop: ' .. tostring(err))",
    ["swallows its cancellation"] = "while true do pcall(tide.sleep, 60) end",
  } do
    it(what .. " exits 0, and names the task", function()
      local app = proc.start { script = ([[
        local tide = require "moontide"
        tide.spawn(function() %s end)
      ]]):format(body) }
      app:wait_ready()
      app:signal "TERM"
      assert.equal(0, (app:wait(5)))
      local record = app:wait_log { level = "warn", task = "task 1" }
      assert.matches("ended badly when it was cancelled", record.msg)
      assert.matches("app.lua:2", record.traceback)
    end)
  end
end)

describe("SIGTERM in the middle of startup", function()
  for what, body in pairs {
    ["words the cancellation anew"] =
      "local _, err = pcall(tide.sleep, 60) error('db: ' .. tostring(err))",
    ["swallows the cancellation"] = "while true do pcall(tide.sleep, 60) end",
    ["goes on working"] = "pcall(tide.sleep, 60) while true do end",
  } do
    it("exits 0, also when the task that was cancelled " .. what, function()
      local app = proc.start { script = ([[
        local tide = require "moontide"
        tide.startup:phase("db", function() io.stdout:write "up\n" io.stdout:flush() %s end)
      ]]):format(body) }
      app:wait_stdout "up"
      app:signal "TERM"
      assert.equal(0, (app:wait(5)))
    end)
  end
end)

describe("SIGINT", function()
  local HANGS = [[
    local tide = require "moontide"
    local function say(text) io.stdout:write(text, "\n") io.stdout:flush() end
    tide.shutdown:phase("mine", { after = "service-stop", timeout = "30s" })
    tide.shutdown:task("mine", "hang", function() say "hangs" tide.sleep(25) end)
    tide.shutdown:task("cluster-leave", "skipped", function() say "skipped" end)
    tide.shutdown:task("actor-system-terminate", "last", function() say "last" end)
    tide.run_until_terminated()]]

  it("a second time skips to the phases that always run", function()
    local app = proc.start { script = HANGS }
    app:wait_ready()
    app:signal "INT"
    app:wait_stdout "hangs"
    app:signal "INT"
    assert.equal(0, (app:wait()))
    assert.equal("hangs\nlast\n", app:stdout())
  end)

  it("a third time ends the process with 130, also while Lua spins", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      local function spin() while true do end end
      tide.shutdown:task("service-stop", "hang", function()
        io.stdout:write "spins\n"
        io.stdout:flush()
        while true do pcall(spin) end
      end)
      tide.run_until_terminated()]] }
    app:wait_ready()
    app:signal "INT"
    app:wait_stdout "spins"
    repeat -- nothing tells that one was noted, and two that pend together are one
      app:signal "INT"
      loop.turn_for(0.05)
    until not app:is_running()
    assert.equal(130, (app:wait()))
  end)
end)

describe("other signals", function()
  it("that cannot be handled are refused with a message", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      for _, name in ipairs { "SIGKILL", "SIGSTOP", "SIGNONSENSE" } do
        print(tide.on_signal(name, print))
      end
    ]] }
    assert.equal(0, (app:wait()))
    assert.matches("^nil\tSIGKILL cannot be handled: [^\n]+\nnil\tSIGSTOP [^\n]+\nnil\tSIGNON",
      app:stdout())
  end)

  it("dump the state and go on (SIGQUIT), or are ignored (SIGHUP)", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.spawn(function() tide.sleep(60) end)]] }
    app:wait_ready()
    app:signal "HUP"
    app:signal "QUIT"
    app:wait_log { component = "dump", msg = "task 1: sleep" }
    assert.is_true(app:is_running())
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)
end)
