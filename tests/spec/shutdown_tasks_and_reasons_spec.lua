local lifecycle = require "support.lifecycle"

describe("a shutdown", function()
  local events, life

  local function app(main, options)
    events = {}
    life = lifecycle.new(function(tide, world)
      world.alive = true
      main(tide, world)
    end, options)
    return life
  end

  local function note(name)
    return function() events[#events + 1] = name end
  end

  it("skips a task whose skip_on names the reason or what it extends", function()
    app(function(tide)
      tide.reason.extend("hot-reload", { parent = "admin" })
      tide.shutdown:task("service-stop", "a", { skip_on = { "admin" } }, note "a")
      tide.shutdown:task("service-stop", "b", { skip_on = { "exit" } }, note "b")
    end)
    life.tide.shutdown:run "hot-reload"
    life:advance(1)
    assert.same({ "b" }, events)
    assert.equal("reason admin", life:logged { task = "a", outcome = "skipped" }[1].fields.why)
  end)

  it("refuses a reason in skip_on that does not exist", function()
    app(function(tide)
      tide.shutdown:task("service-stop", "a", { skip_on = { "crsh" } }, note "a")
    end)
    assert.equal(78, life.code)
    assert.matches("unknown reason \"crsh\"", life:logged { level = "error" }[1].message)
  end)

  it("takes exit code, phases to skip and total of a reason from the configuration", function()
    app(function(tide)
      tide.config { shutdown = { reasons = {
        ["process-terminate"] = { exit_code = 143, skip = { "service-stop" }, timeout = "8s" },
      } } }
      tide.shutdown:task("service-stop", "a", note "a")
      tide.shutdown:task("before-actor-system-terminate", "b", note "b")
    end)
    local before = life.tide.now()
    life:signal "SIGTERM"
    assert.is_true(math.abs((life.tide.shutdown.run_state.total_end - before) - 8) < 0.01)
    life:advance(1)
    assert.same({ "b" }, events)
    assert.equal(143, life.code)
    assert.equal(1, #life:logged { phase = "service-stop", why = "reason process-terminate" })
  end)

  it("lets a later reason make a clean exit an unclean one, not the other way", function()
    app(function(tide)
      tide.shutdown:task("service-stop", "a", function() tide.sleep(1) end)
    end)
    life:signal "SIGTERM"
    life.uncaught("timer", "boom")
    life:signal "SIGINT" -- a clean one again
    life:advance(2)
    assert.equal(1, life.code)
    assert.equal("process-terminate", life.tide.shutdown.reason.kind)
  end)

  it("runs the hooks when all but the host itself has ended", function()
    app(function(tide)
      for _, name in ipairs(tide.shutdown.names) do
        tide.shutdown:task(name, "note", note(name))
      end
    end)
    life:signal "SIGTERM"
    life:advance(1)
    assert.same({ "before-actor-system-terminate", "shutdown-hooks", "actor-system-terminate" },
      table.move(events, 11, 13, 1, {}))
    assert.equal(13, #events)
  end)

  it("runs the tasks of a phase after one another where after says so", function()
    app(function(tide)
      tide.shutdown:task("service-stop", "c", { after = "b" }, note "c")
      tide.shutdown:task("service-stop", "b", { after = "a" }, note "b")
      tide.shutdown:task("service-stop", "a", function() tide.sleep(1) events[1] = "a" end)
    end)
    life:signal "SIGTERM"
    life:advance(2)
    assert.same({ "a", "b", "c" }, events)
  end)

  it("refuses an after that names no task, or comes round to itself", function()
    app(function(tide)
      tide.shutdown:task("service-stop", "one", { after = "tow" }, note "x")
      tide.shutdown:task("service-stop", "two", { after = "three" }, note "x")
      tide.shutdown:task("service-stop", "three", { after = "two" }, note "x")
    end)
    assert.equal(78, life.code)
    local errors = life:logged { level = "error" }
    assert.matches("unknown task \"tow\"; did you mean \"two\"", errors[1].message)
    assert.matches("task \"two\" of phase service%-stop waits for itself", errors[2].message)
  end)

  it("gives the late task's words: which task, phase, limit, seconds, and its stack", function()
    app(function(tide)
      tide.shutdown:phase("mine", { after = "service-stop", timeout = "2s" })
      tide.shutdown:task("mine", "hangs", function() tide.sleep(60) end)
    end)
    life:signal "SIGTERM"
    life:advance(4)
    local record = life:logged { level = "warn", task = "hangs" }[1]
    assert.matches("task hangs of phase mine timed out after 2 s: the timeout of phase mine, 2s",
      record.message)
    assert.matches("shutdown_tasks_and_reasons_spec.lua", record.fields.traceback)
    assert.equal(0, life.code)
  end)

  it("shares the total: what is left of it is the limit of later phases", function()
    app(function(tide)
      tide.config { shutdown = { timeout = "8s", linger = 0, drain = "1s" } }
      tide.shutdown:task("service-stop", "first", function() tide.sleep(4) end)
      tide.shutdown:phase("second", { after = "service-stop", timeout = "6s" })
      tide.shutdown:task("second", "late", function(_, ctx)
        events[1] = ctx:remaining()
        tide.sleep(60)
      end)
    end)
    life:signal "SIGTERM"
    life:advance(8)
    -- 8 s less a reserve of 1 s less the 4 s that are gone
    assert.is_true(math.abs(events[1] - 3) < 0.01)
    assert.matches("what was left of the shutdown total", life:logged { task = "late" }[1].message)
    assert.equal(0, life.code)
  end)

  it("says every five seconds what it waits for", function()
    app(function(tide)
      tide.config { shutdown = { timeout = "60s" } }
      tide.shutdown:phase("mine", { after = "service-stop", timeout = "30s" })
      tide.shutdown:task("mine", "slow", function() tide.sleep(12) end)
    end)
    life:signal "SIGTERM"
    life:advance(15)
    local lines = life:logged { message = "^waiting for mine: slow, .* of 30 s, sleep$" }
    assert.equal(2, #lines)
    assert.matches("5.0 of 30 s", lines[1].message)
    assert.matches("10.0 of 30 s", lines[2].message)
  end)

  it("shares one run, and gives a late waiter the code", function()
    app(function(tide)
      tide.shutdown:task("service-stop", "a", function() tide.sleep(1) end)
    end)
    local first = life.tide.shutdown:run "admin"
    local code
    require("moontide.task").start({ scope = require("moontide.task").pipeline }, function()
      code = first:await()
    end)
    life:advance(2)
    assert.equal(0, code)
    assert.equal(first, life.tide.shutdown:run())
    life:task(function() assert(first:await() == 0) end)
  end)

  it("changes the budget of a phase that has not begun, and only that", function()
    local refused
    app(function(tide)
      tide.shutdown:set_phase_timeout("service-stop", "1s")
      tide.shutdown:task("service-stop", "a", function() tide.sleep(60) end)
      tide.shutdown:task("before-cluster-shutdown", "b", function()
        local set = tide.shutdown.set_phase_timeout
        refused = select(2, pcall(set, tide.shutdown, "service-stop", 9))
      end)
    end)
    life:signal "SIGTERM"
    life:advance(1.5)
    assert.equal("timed_out", life.tide.shutdown.tasks["service-stop"].by_name.a.outcome)
    assert.matches("has already begun", refused)
  end)

  it("keeps nothing of a hundred thousand tasks that were withdrawn", function()
    app(function(tide)
      for i = 1, 100000 do
        assert(tide.shutdown:task("service-stop", "t" .. i % 50, note "x"):cancel())
      end
    end)
    local tasks = life.tide.shutdown.tasks["service-stop"]
    assert.equal(0, tasks.live)
    assert.is_true(tasks.count < 100)
  end)

  it("refuses late tasks that would wait for nothing, or for each other", function()
    local messages = {}
    app(function(tide)
      tide.shutdown:task("service-stop", "registers", function()
        local tries = { a = { after = "b" }, b = { after = "b" }, c = { skip_on = "x" } }
        for name, opts in pairs(tries) do
          local ok, message = pcall(function()
            tide.shutdown:task("cluster-leave", name, opts, note(name))
          end)
          messages[name] = not ok and message
        end
        tide.shutdown:task("cluster-leave", "b", note "b")
        tide.shutdown:task("cluster-leave", "a", { after = "b" }, note "a")
      end)
    end)
    life:signal "SIGTERM"
    life:advance(1)
    assert.same({ "b", "a" }, events)
    assert.matches("unknown task \"b\"", messages.a)
    assert.matches("waits for itself", messages.b)
    assert.matches("unknown reason \"x\"", messages.c)
    assert.equal(0, life.code)
  end)

  it("leaves without a pipeline where run_by_terminate is off", function()
    app(function(tide)
      tide.config { shutdown = { run_by_terminate = false, terminate_host = false } }
      tide.shutdown:task("service-stop", "a", note "a")
    end)
    life.tide.terminate()
    life:advance(1)
    assert.same({}, events)
    assert.equal("stopped", life.state)
    assert.equal("actor-system-terminate", life.tide.shutdown.reason.kind)
    assert.is_nil(life.tide.shutdown.run_state) -- no pipeline ran
  end)

  it("removes the wired tasks as one group, the terminator excepted", function()
    app(function(tide)
      tide.config { shutdown = { auto_register_tasks = false } }
      tide.shutdown:builtin_task("service-unbind", "unbind:x", note "unbind")
      tide.shutdown:task("service-unbind", "mine", note "mine")
    end)
    life:signal "SIGTERM"
    life:advance(1)
    assert.same({ "mine" }, events)
    local last = life.tide.shutdown.tasks["actor-system-terminate"].by_name.terminate
    assert.equal("ok", last.outcome)
  end)

  it("can begin while the main chunk still runs", function()
    events = {}
    life = lifecycle.new(function(tide)
      tide.shutdown:on("hook", note "hook")
      tide.sleep(5)
      events[#events + 1] = "main went on"
    end)
    life:signal "SIGTERM"
    life:advance(1)
    assert.same({ "hook" }, events)
    assert.equal(0, life.code)
  end)

  it("says what is wrong with a graph that it finds half declared", function()
    events = {}
    life = lifecycle.new(function(tide)
      tide.shutdown:phase("a", { after = "b" })
      tide.sleep(5)
      tide.shutdown:phase("b", { after = "service-stop" })
    end)
    life:signal "SIGTERM"
    life:advance(1)
    assert.equal(1, life.code)
    assert.matches("unknown phase \"b\"", life:logged { level = "error" }[1].message)
  end)

  it("cancels what still runs in the root scope at its end", function()
    app(function(tide)
      tide.spawn(function()
        local _ <close> = setmetatable({}, { __close = note "closed" })
        tide.sleep(100)
      end)
    end)
    life:signal "SIGTERM"
    life:advance(1)
    assert.same({ "closed" }, events)
    assert.equal(0, life.code)
  end)
end)
