-- A phase of a running pipeline can be given more time from the console, out of the pipeline's
-- total: who loses it is said, and beyond the total it is refused with the number that fits.
local lifecycle = require "support.lifecycle"
local steering = require "support.steering"

local life, steer, tide

local function app(main, options)
  life = lifecycle.new(function(library, world)
    tide = library
    world.alive = true
    main(library)
  end, options)
  steer = steering.new(life)
end

local function entry(kind, phase, name)
  return tide[kind].tasks[phase].by_name[name]
end

local function near(expected, actual)
  assert.is_true(math.abs(expected - actual) < 0.01, ("%s is not %s"):format(actual, expected))
end

local function took(item)
  return item.ended_at - item.started_at
end

describe("extend", function()
  after_each(function() steer:finish() end)

  it("gives a running phase more, with what its tasks have started", function()
    local inner
    app(function()
      tide.config { shutdown = { timeout = "60s" } }
      tide.shutdown:task("service-stop", "flush", function()
        inner = tide.spawn(function() tide.sleep(8) end)
        tide.all { function() tide.sleep(8) end, function() inner:await() end }
      end)
    end)
    life:signal "SIGTERM"
    life:advance(4)
    local value = steer:run("extend", "service-stop", "5s", "a large batch")
    assert.matches("phase service%-stop has 10s, 5s more: 5s that the total had to spare",
      value.text)
    life:advance(5)
    assert.equal(0, life.code)
    assert.equal("ok", entry("shutdown", "service-stop", "flush").outcome)
    near(8, took(entry("shutdown", "service-stop", "flush")))
    assert.equal("ok", inner.outcome)
    assert.same({ action = "extend", text = "service-stop by 5s: a large batch" },
      steer.audited[1])
  end)

  it("ends the phase at its new time, and says so", function()
    app(function()
      tide.shutdown:task("service-stop", "flush", function() tide.sleep(60) end)
    end)
    life:signal "SIGTERM"
    steer:run("extend", "service-stop", "2s", "a large batch")
    life:advance(6.9)
    assert.is_nil(life.code)
    life:advance(0.2)
    assert.equal(0, life.code)
    near(7, took(entry("shutdown", "service-stop", "flush")))
    local record = life:logged { task = "flush", outcome = "timed_out" }[1]
    assert.matches("the timeout of phase service%-stop, 7s", record.message)
    local report = require("moontide.observe.report.summary").make(tide.startup, tide.shutdown, 0)
    for _, phase in ipairs(report.pipelines[#report.pipelines].phases) do
      if phase.name == "service-stop" then assert.equal(7, phase.timeout) end
    end
  end)

  it("leaves a task's own timeout alone, and an inner one that is its own", function()
    local inner
    app(function()
      tide.shutdown:task("service-stop", "short", { timeout = 2 }, function() tide.sleep(60) end)
      tide.shutdown:task("service-stop", "inner", function()
        inner = { pcall(tide.timeout, 3, function() tide.sleep(60) end) }
        tide.sleep(4)
      end)
    end)
    life:signal "SIGTERM"
    local value = steer:run("extend", "service-stop", 5, "why not")
    assert.matches("not longer: short %(its own timeout, or over%)", value.text)
    life:advance(3.1)
    near(2, took(entry("shutdown", "service-stop", "short")))
    assert.equal("tide.timeout", inner[2].limit)
    life:advance(5)
    assert.equal("ok", entry("shutdown", "service-stop", "inner").outcome)
  end)

  it("gives a phase that has not begun more", function()
    app(function()
      tide.shutdown:task("service-unbind", "first", function() tide.sleep(1) end)
      tide.shutdown:task("cluster-leave", "leave", function() tide.sleep(8) end)
    end)
    life:signal "SIGTERM"
    steer:run("extend", "cluster-leave", "5s", "the cluster is slow")
    life:advance(10)
    assert.equal(0, life.code)
    assert.equal("ok", entry("shutdown", "cluster-leave", "leave").outcome)
  end)

  it("says what it takes from whom", function()
    app(function()
      tide.config { shutdown = { timeout = "24s" } } -- 3s of it are kept for the end
      for _, phase in ipairs { "service-stop", "cluster-leave", "cluster-exiting-done" } do
        tide.shutdown:task(phase, "slow", function() tide.sleep(60) end)
      end
    end)
    life:signal "SIGTERM"
    local value = steer:run("extend", "service-stop", "12s", "a large batch")
    assert.matches("6s that the total had to spare, at worst 5s of cluster%-exiting%-done, "
      .. "at worst 1s of cluster%-leave", value.text)
    life:advance(17.1)
    near(17, took(entry("shutdown", "service-stop", "slow")))
    life:advance(10)
    assert.equal(0, life.code)
    assert.matches("what was left of the shutdown total",
      life:logged { phase = "cluster-leave", task = "slow", outcome = "timed_out" }[1].message)
  end)

  it("says so when what comes last has what the total leaves, or comes only maybe", function()
    app(function()
      tide.config { shutdown = { timeout = "20s" } } -- 2.5s of it are kept
      tide.shutdown:task("service-unbind", "slow", function() tide.sleep(60) end)
      tide.shutdown:task("service-stop", "slow", function() tide.sleep(60) end)
      tide.shutdown:task("cluster-exiting", "slow", function() tide.sleep(60) end)
      tide.shutdown:on("hook", function() end)
    end)
    life:signal "SIGTERM"
    assert.matches(": 1s if the phases before take less than they may\n",
      steer:run("extend", "cluster-exiting", "1s", "why").text)
    steer:run("skip", "service-unbind", "now")
    life:turn()
    assert.matches(": at worst 1s of shutdown%-hooks\n",
      steer:run("extend", "service-stop", "1s", "why").text)
  end)

  it("refuses more than the total has, with the number that fits, which then fits", function()
    app(function()
      tide.config { shutdown = { timeout = "16s" } } -- 2s of it are kept
      tide.shutdown:task("service-stop", "slow", function() tide.sleep(60) end)
      tide.shutdown:task("cluster-leave", "later", function() tide.sleep(60) end)
    end)
    life:signal "SIGTERM"
    life:advance(1)
    local before = life.totals.shutdown
    local message = steer:refused("extend", "service-stop", "30s", "why")
    assert.matches("the total of 16s leaves phase service%-stop at most 9s more", message)
    steer:run("extend", "service-stop", "9s", "why")
    assert.matches("leaves phase service%-stop nothing more",
      steer:refused("extend", "service-stop", "1s", "why"))
    assert.equal(before, life.totals.shutdown) -- the watchdog's
    life:advance(20)
    assert.equal(0, life.code)
    near(14, took(entry("shutdown", "service-stop", "slow")))
  end)

  it("gives each attempt of a retried phase more", function()
    app(function()
      tide.startup:phase("db", { timeout = 1, on_fail = tide.retry { base = 1, jitter = 0,
        attempts = 3, give_up_after = 5 } }, function() tide.sleep(1.5) end)
    end)
    life:advance(0.5)
    steer:run("extend", "db", "1s", "it is slow today")
    life:advance(1.1)
    assert.equal("ready", life.state)
    assert.equal(1, entry("startup", "db", "db").attempts)
  end)

  it("lengthens the drain of a worker, whose limit is its own", function()
    local batches = 0
    app(function()
      tide.worker("mill", { every = 1, drain = 4 }, function()
        tide.sleep(7)
        batches = batches + 1
      end)
    end)
    life:advance(1)
    life:signal "SIGTERM"
    steer:run("extend", "service-stop", "5s", "the batch is nearly done")
    life:advance(7)
    assert.equal(0, life.code)
    assert.equal(1, batches)
  end)

  describe("refuses", function()
    before_each(function()
      app(function()
        tide.shutdown:task("service-unbind", "quick", function() end)
        tide.shutdown:task("service-stop", "flush", function() tide.sleep(3) end)
        tide.shutdown:on("hook", function() tide.sleep(3) end)
      end)
    end)

    it("while no pipeline runs", function()
      assert.equal("extend: no pipeline runs: the process is ready",
        steer:refused("extend", "service-stop", "5s", "why"))
    end)

    it("a missing reason, a time that is none, and names that are no phase", function()
      life:signal "SIGTERM"
      assert.matches("a reason is wanted.*extend%(", steer:refused("extend", "service-stop", "5s"))
      assert.matches("has no unit", steer:refused("extend", "service-stop", "5", "why"))
      assert.matches("0 more changes nothing", steer:refused("extend", "service-stop", 0, "why"))
      assert.matches("did you mean \"service%-stop\"",
        steer:refused("extend", "servce-stop", "5s", "why"))
      assert.matches("service%-stop/flush is a task; its phase is given more",
        steer:refused("extend", "flush", "5s", "why"))
    end)

    it("a phase that is over, and one that has what the total leaves", function()
      life:signal "SIGTERM"
      assert.matches("phase service%-unbind is over: ok",
        steer:refused("extend", "service-unbind", "5s", "why"))
      assert.matches("has all the time that the total leaves",
        steer:refused("extend", "shutdown-hooks", "5s", "why"))
      assert.same({}, steer.audited)
    end)
  end)
end)
