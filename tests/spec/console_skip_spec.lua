-- A task or phase of a running pipeline can be skipped from the console: the pipeline goes on, and
-- the process ends as if nothing had been wrong.
local lifecycle = require "support.lifecycle"
local steering = require "support.steering"

local life, steer, tide

local function app(main)
  life = lifecycle.new(function(library, world)
    tide = library
    world.alive = true
    main(library)
  end)
  steer = steering.new(life)
end

local function hangs()
  tide.sleep(20)
end

local function entry(kind, phase, name)
  return tide[kind].tasks[phase].by_name[name]
end

describe("skip", function()
  after_each(function() steer:finish() end)

  it("ends a running task, and the shutdown goes on to a clean exit", function()
    local closed
    app(function()
      tide.shutdown:task("service-stop", "flush", function()
        local _ <close> = setmetatable({}, { __close = function() closed = true end })
        hangs()
      end)
    end)
    life:signal "SIGTERM"
    life:advance(1)
    assert.is_nil(life.code)
    local value = steer:run("skip", "flush", "the disk is gone")
    assert.matches("service%-stop/flush of the shutdown is skipped: it is told to end", value.text)
    life:turn()
    assert.equal(0, life.code)
    assert.is_true(closed)
    local flush = entry("shutdown", "service-stop", "flush")
    assert.equal("skipped", flush.outcome)
    assert.equal("console, moontide of user 1000: the disk is gone", flush.error)
    assert.equal("ok", tide.shutdown.tasks["service-stop"].outcome)
  end)

  it("takes the reason to the audit, to the log and to the report", function()
    app(function() tide.shutdown:task("service-stop", "flush", hangs) end)
    life:signal "SIGTERM"
    steer:run("skip", "service-stop/flush", "the disk is gone")
    life:turn()
    assert.same({ { action = "skip", text = "service-stop/flush: the disk is gone" } },
      steer.audited)
    assert.equal(1, #life:logged { level = "warn", message = "skip service%-stop/flush at the" })
    local report = require("moontide.observe.report.summary").make(tide.startup, tide.shutdown, 0)
    assert.equal(1, #report.console)
    local done = report.console[1]
    assert.same({ "skip", "service-stop/flush", "the disk is gone", 1000, 4711 },
      { done.action, done.target, done.reason, done.uid, done.pid })
    local phases = report.pipelines[#report.pipelines].phases
    for _, phase in ipairs(phases) do
      if phase.name == "service-stop" then
        assert.matches("the disk is gone", phase.tasks[1].error)
        assert.equal("skipped", phase.tasks[1].outcome)
      end
    end
  end)

  it("does not let a skipped task fail a phase that tolerates nothing", function()
    app(function()
      tide.shutdown:phase("strict", { after = "service-stop", recover = false }, function()
        pcall(hangs)
        error "cleanup went wrong"
      end)
    end)
    life:signal "SIGTERM"
    steer:run("skip", "strict/strict", "it hangs")
    life:turn()
    assert.equal(0, life.code)
    local strict = entry("shutdown", "strict", "strict")
    assert.equal("skipped", strict.outcome)
    assert.matches("it hangs %(it ended with: .*cleanup went wrong%)", strict.error)
  end)

  it("closes a task that does not end in its grace", function()
    app(function()
      tide.shutdown:task("service-stop", "deaf", function()
        tide.shield(30, function() tide.sleep(30) end)
      end)
    end)
    life:signal "SIGTERM"
    steer:run("skip", "deaf", "it hangs")
    life:turn()
    assert.is_nil(life.code)
    life:advance(1.5)
    assert.equal(0, life.code)
    assert.matches("it did not end in its grace", entry("shutdown", "service-stop", "deaf").error)
  end)

  it("keeps the outcome of a task that ends in order all the same", function()
    app(function() tide.shutdown:task("service-stop", "flush", function() pcall(hangs) end) end)
    life:signal "SIGTERM"
    steer:run("skip", "flush", "too slow")
    life:turn()
    assert.equal(0, life.code)
    assert.equal("skipped", entry("shutdown", "service-stop", "flush").outcome)
  end)

  it("skips a task that has not started: of a later phase, or behind another", function()
    local ran = {}
    app(function()
      tide.shutdown:task("service-unbind", "slow", function() tide.sleep(1) end)
      tide.shutdown:task("service-unbind", "second", { after = "slow" }, function()
        ran[#ran + 1] = "second"
      end)
      tide.shutdown:task("service-unbind", "third", { after = "second" }, function()
        ran[#ran + 1] = "third"
      end)
      tide.shutdown:task("service-stop", "later", function() ran[#ran + 1] = "later" end)
      tide.shutdown:on("first hook", function() ran[#ran + 1] = "first hook" end)
      tide.shutdown:on("last hook", function() tide.sleep(1) end)
    end)
    life:signal "SIGTERM"
    assert.matches("it had not started", steer:run("skip", "second", "no need").text)
    assert.matches("not start when phase service%-stop begins",
      steer:run("skip", "later", "no need").text)
    life:advance(1.5)
    assert.same({ "third" }, ran)
    assert.matches("it had not started", steer:run("skip", "first hook", "no need").text)
    life:advance(2)
    assert.equal(0, life.code)
    assert.same({ "third" }, ran)
    assert.equal("skipped", entry("shutdown", "service-stop", "later").outcome)
    assert.equal("skipped", entry("shutdown", "shutdown-hooks", "first hook").outcome)
  end)

  it("skips the rest of a phase that runs, and a phase that has not begun", function()
    local ran = {}
    app(function()
      tide.shutdown:task("service-stop", "a", hangs)
      tide.shutdown:task("service-stop", "b", hangs)
      tide.shutdown:task("service-stop", "c", { after = "a" }, function() ran[1] = "c" end)
      tide.shutdown:task("cluster-leave", "d", function() ran[1] = "d" end)
    end)
    life:signal "SIGTERM"
    assert.matches("it will not begin", steer:run("skip", "cluster-leave", "no cluster").text)
    assert.matches("2 running tasks are told to end", steer:run("skip", "service-stop", "now").text)
    life:turn()
    assert.equal(0, life.code)
    assert.same({}, ran)
    assert.equal("skipped", tide.shutdown.tasks["service-stop"].outcome)
    assert.equal("skipped", tide.shutdown.tasks["cluster-leave"].status)
    assert.matches("no cluster", tide.shutdown.tasks["cluster-leave"].why)
  end)

  it("skips a step of the startup, whatever its policy", function()
    app(function()
      tide.startup:phase("cache", { on_fail = "exit" }, hangs)
      tide.startup:phase("queue", { after = "cache" }, function() end)
    end)
    life:advance(1)
    assert.equal("starting", life.state)
    steer:run("skip", "cache", "it can be cold")
    life:turn()
    assert.equal("ready", life.state)
  end)

  it("skips a step between two attempts, and during one", function()
    app(function()
      local policy = tide.retry { base = 5, jitter = 0, attempts = 50 }
      tide.startup:phase("one", { on_fail = policy }, function() error "no" end)
      tide.startup:phase("two", { on_fail = policy, after = "one" }, hangs)
    end)
    life:advance(1)
    assert.is_truthy(entry("startup", "one", "one").retry_at)
    steer:run("skip", "one/one", "not needed")
    life:advance(1)
    assert.equal("skipped", entry("startup", "one", "one").outcome)
    steer:run("skip", "two/two", "not needed")
    life:advance(1)
    assert.equal("ready", life.state)
    assert.equal(1, entry("startup", "two", "two").attempts)
  end)

  it("skips a phase of ten thousand, one by one and all at once", function()
    local ran = 0
    app(function()
      for i = 1, 10000 do
        tide.shutdown:on("hook" .. i, function() tide.sleep(60) ran = ran + 1 end)
        tide.shutdown:task("service-stop", "t" .. i, function() tide.sleep(60) ran = ran + 1 end)
      end
    end)
    life:signal "SIGTERM"
    assert.matches("10000 running tasks are told", steer:run("skip", "service-stop", "now").text)
    assert.matches("unknown phase or task", steer:refused("skip", "hok9999", "why"))
    life:turn()
    assert.matches("1 running task is told", steer:run("skip", "shutdown-hooks", "now").text)
    life:turn()
    assert.equal(0, life.code)
    assert.equal(0, ran)
    assert.equal("skipped", entry("shutdown", "shutdown-hooks", "hook1").outcome)
  end)

  describe("refuses", function()
    before_each(function()
      app(function()
        tide.startup:phase("db", function() tide.sleep(1) end)
        tide.shutdown:task("service-stop", "flush", hangs)
        tide.shutdown:task("service-unbind", "twice", hangs)
        tide.shutdown:task("service-stop", "twice", hangs)
      end)
    end)

    it("to do anything while no pipeline runs", function()
      life:advance(2)
      assert.equal("skip: no pipeline runs: the process is ready",
        steer:refused("skip", "flush", "why"))
    end)

    it("a missing or empty reason, showing the right call", function()
      for _, reason in ipairs { false, "", "  ", 7 } do
        local message = steer:refused("skip", "db", reason or nil)
        assert.matches("a reason is wanted.*skip%(\"service%-stop/flush\", \"the disk is gone\"%)",
          message)
      end
      assert.matches("501 bytes", steer:refused("skip", "db", ("x"):rep(501)))
      assert.same({}, steer.audited)
    end)

    it("an unknown name, with the nearest", function()
      assert.equal("skip: unknown phase or task of the startup \"dbb\"; did you mean \"db\"?",
        steer:refused("skip", "dbb", "why"))
      assert.matches("the name of a phase or a task is wanted", steer:refused("skip", nil, "why"))
    end)

    it("a name of several tasks, naming them", function()
      life:advance(2)
      life:signal "SIGTERM"
      assert.equal("\"twice\" is a task of several phases: say which, \"service-unbind/twice\" or "
        .. "\"service-stop/twice\"", steer:refused("skip", "twice", "why"))
      steer:run("skip", "service-unbind/twice", "why")
      life:turn()
      steer:run("skip", "twice", "the other is over")
    end)

    it("what is over, what is being skipped, and the last phase", function()
      life:advance(2)
      life:signal "SIGTERM"
      life:advance(6)
      assert.matches("service%-unbind/twice is over: timed_out after 5s",
        steer:refused("skip", "service-unbind/twice", "why"))
      assert.matches("phase actor%-system%-terminate always runs",
        steer:refused("skip", "actor-system-terminate", "why"))
      assert.matches("the host's own last step", steer:refused("skip", "terminate", "why"))
    end)
  end)
end)
