local lifecycle = require "support.lifecycle"

describe("signals", function()
  local events, life

  local function app(main)
    events = {}
    life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.shutdown:task("service-stop", "slow", function() tide.sleep(3) end)
      tide.shutdown:task("before-actor-system-terminate", "later", function()
        events[#events + 1] = "later"
      end)
      tide.shutdown:task("actor-system-terminate", "last", function()
        events[#events + 1] = "last"
      end)
      if main then main(tide, world) end
    end)
    return life
  end

  it("shut down by SIGTERM with signal and sender in the reason record", function()
    app()
    life:signal("SIGTERM", 777)
    assert.equal("draining", life.state)
    local record = life:logged { signal = "SIGTERM", pid = 777 }[1]
    assert.equal("process-terminate", record.fields.reason)
    life:advance(5)
    assert.same({ "later", "last" }, events)
    assert.equal(0, life.code)
  end)

  it("record a repeated SIGTERM and change nothing", function()
    app()
    life:signal "SIGTERM"
    life:signal "SIGTERM"
    life:advance(2)
    assert.is_nil(life.code)
    life:advance(2)
    assert.same({ "later", "last" }, events)
    assert.equal(1, #life:logged { message = "is under way; recorded: process%-terminate" })
  end)

  it("skip to the phases that always run at a second SIGINT", function()
    app()
    life:signal "SIGINT"
    life:advance(1)
    life:signal "SIGINT"
    life:advance(0.1)
    assert.same({ "last" }, events)
    assert.equal("cancelled", life.tide.shutdown.tasks["service-stop"].by_name.slow.outcome)
    assert.equal(0, life.code)
  end)

  it("end the process at a third SIGINT", function()
    app()
    for _ = 1, 3 do life:signal "SIGINT" end
    assert.equal(130, life.exited)
  end)

  it("force a startup that hangs", function()
    life = lifecycle.new(function(tide)
      tide.startup:phase("hang", function()
        pcall(tide.sleep, 60)
        tide.sleep(60)
      end)
    end)
    life:signal "SIGINT"
    life:signal "SIGINT"
    life:advance(0.1)
    assert.equal(0, life.code)
  end)

  it("call a handler of the script's for SIGHUP as a task that may await", function()
    local got
    app(function(tide)
      assert.is_true(tide.on_signal("SIGHUP", function(name) tide.sleep(1) got = name end))
    end)
    life:signal "SIGHUP"
    life:advance(1.1)
    assert.equal("SIGHUP", got)
    assert.equal("ready", life.state)
  end)

  it("ignore SIGHUP without a handler", function()
    app()
    life:signal "SIGHUP"
    life:advance(1)
    assert.equal("ready", life.state)
  end)

  it("refuse a handler for those that have a meaning, and for what cannot be caught", function()
    local results = {}
    app(function(tide)
      results.term = { pcall(tide.on_signal, "SIGTERM", function() end) }
      results.kill = { tide.on_signal("SIGKILL", function() end) }
    end)
    assert.is_false(results.term[1])
    assert.matches("shuts the process down", results.term[2])
    assert.is_nil(results.kill[1])
    assert.matches("cannot be handled", results.kill[2])
  end)

  it("reopen the log for SIGUSR1", function()
    app()
    life:signal "SIGUSR1"
    assert.is_true(life.reopened)
  end)

  it("write the state dump for SIGQUIT and go on", function()
    app(function(tide)
      tide.spawn(function() tide.sleep(100) end)
    end)
    life:signal "SIGQUIT"
    assert.equal("ready", life.state)
    assert.equal(1, #life:logged { component = "dump", message = "^state dump$" })
    local tasks = life:logged { component = "dump", message = "^task .*: sleep$" }
    assert.equal(1, #tasks)
    assert.matches("signals_escalate_spec.lua", tasks[1].fields.traceback)
  end)

  it("name what a dump in the middle of a shutdown waits for", function()
    app()
    life:signal "SIGTERM"
    life:advance(1)
    life:signal "SIGQUIT"
    local lines = life:logged { component = "dump", message = "waiting for service%-stop: slow" }
    assert.equal(1, #lines)
  end)

  it("S02: remove exactly the hooks that were installed, twice harmlessly", function()
    app()
    life.watched = {}
    life.core.host.mode = "module"
    local signals = require "moontide.signals"
    life.watched.SIGUSR2 = true -- somebody else's
    local before = os.exit
    signals.install_process_hooks { "SIGTERM", "SIGKILL" }
    signals.install_process_hooks()
    assert.is_true(life.watched.SIGTERM)
    assert.is_nil(life.watched.SIGKILL)
    signals.remove_process_hooks()
    signals.remove_process_hooks()
    assert.same({ SIGUSR2 = true }, life.watched)
    assert.equal(before, os.exit)
  end)
end)
