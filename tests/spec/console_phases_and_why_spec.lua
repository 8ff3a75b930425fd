-- phases() shows what each phase may take, took, and has left; why() what keeps the process from
-- being ready or from its end.
local inspecting = require "support.inspecting"
local lifecycle = require "support.lifecycle"

local life, tide

local function app(main, options)
  life = lifecycle.new(function(library, world)
    tide = library
    world.alive = true
    main(library)
  end, options)
end

local function phase(kind, name)
  return inspecting.find(inspecting.ask(life, "phases")[kind].phases, { name = name })
end

local function near(expected, value)
  assert.is_true(math.abs(expected - value) < 0.2, ("%s, not %s"):format(value, expected))
end

describe("phases()", function()
  after_each(function() inspecting.finish(life) end)

  local function starting()
    app(function()
      tide.startup:phase("db", { timeout = "4s" }, function() tide.sleep(1) end)
      tide.startup:phase("cache", { timeout = "10s" })
      for i = 1, 12 do
        tide.startup:task("cache", "shard " .. i, function() tide.sleep(i) end)
      end
      tide.startup:phase("idle")
    end)
    life:advance(3.5)
  end

  it("tells budget, used and slack of each phase", function()
    starting()
    local db, cache, idle = phase("startup", "db"), phase("startup", "cache"),
      phase("startup", "idle")
    assert.same({ "done", "ok", 4 }, { db.status, db.outcome, db.budget })
    near(1, db.used)
    near(3, db.slack)
    assert.same({ "running", 10, 12, 2 }, { cache.status, cache.budget, cache.tasks, cache.done })
    near(2.5, cache.used)
    near(7.5, cache.slack)
    assert.same({ "pending", nil, nil }, { idle.status, idle.used, idle.slack })
  end)

  it("names tasks that run, so many at most, and what is waited for", function()
    starting()
    local cache = phase("startup", "cache")
    assert.equal(10, #cache.running)
    assert.equal("shard 3", cache.running[1])
    assert.matches("^cache: shard 3 and 9 more, 2%.%d of 10 s, sleep$", cache.waiting_for)
  end)

  it("tells the pipeline's total, and what is left of it", function()
    starting()
    local data, text = inspecting.ask(life, "phases")
    assert.same({ "running", 120 }, { data.startup.outcome, data.startup.total })
    near(3.5, data.startup.used)
    near(116.5, data.startup.left)
    assert.equal("not begun", data.shutdown.outcome)
    assert.matches("^startup: running, total 2m00s, used 3%.%d s, left 1m5%ds\n", text)
    assert.matches("\n\nshutdown: not begun, total 40.0 s\n", text)
    assert.matches("\nshutdown%-hooks +pending +rest ", text)
  end)

  it("tells what failed, was skipped, or is switched off", function()
    app(function()
      tide.config { shutdown = { phases = { ["cluster-leave"] = { enabled = false } } } }
      tide.startup:phase("db", function() error "no route" end)
      tide.startup:phase("after", function() end)
    end)
    life:advance(0.1)
    assert.equal(1, phase("startup", "db").failed)
    assert.equal("db failed", phase("startup", "after").why)
    local leave = phase("shutdown", "cluster-leave")
    assert.is_true(leave.status == "disabled" or leave.why == "disabled")
  end)

  it("shows a phase that is over its time with a slack below 0", function()
    app(function()
      tide.startup:phase("stuck", { timeout = "1s" }, function()
        tide.shield(60, function() tide.sleep(30) end)
      end)
    end)
    life:advance(1.5)
    assert.is_true(phase("startup", "stuck").slack < -0.3)
  end)
end)

describe("why()", function()
  after_each(function() inspecting.finish(life) end)

  it("says that nothing is wrong", function()
    app(function() end)
    life:advance(1)
    local data, text = inspecting.ask(life, "why")
    assert.equal("ready", text)
    assert.equal(0, #data.waiting_for)
    assert.is_nil(data.reason)
  end)

  it("names the attempt that a start waits for", function()
    app(function()
      tide.startup:phase("db", { on_fail = tide.retry { base = "5s" } }, function()
        error "refused"
      end)
    end)
    life:advance(1)
    assert.matches("^startup phase db: db, 1%.%d of .- s, next attempt in [34]%.%d s$",
      inspecting.ask(life, "why").waiting_for[1])
  end)

  it("names critical checks and silent heartbeats, not the others", function()
    app(function()
      tide.check("queue", { every = "1s" }, function() return false, "full" end)
      tide.check("mirror", { every = "1s", critical = false }, function() return false, "far" end)
      tide.heartbeat("poller", { every = "1s", stale_after = "3s" })
    end)
    life:advance(10)
    local lines = inspecting.ask(life, "why").waiting_for
    assert.equal(2, #lines)
    assert.matches("^heartbeat poller is stale %(stale after 3.0 s%)$", lines[1])
    assert.matches("^check queue is not ok: full %(%d+ not ok%)$", lines[2])
  end)

  it("names what a drain waits for: phases, work in flight, and later reasons", function()
    app(function()
      local source = require("moontide.core.work").source "jobs:test"
      tide.shutdown:task("service-requests-done", "jobs", function()
        source:begin()
        tide.sleep(8)
        source:done()
      end)
    end)
    life:advance(1)
    life:signal("SIGTERM", 4711)
    life:advance(1)
    life:signal("SIGINT", 4712)
    local data, text = inspecting.ask(life, "why")
    assert.equal("1 in flight: jobs:test", data.waiting_for[2])
    assert.same({ "SIGTERM", 4711 }, { data.reason.signal, data.reason.pid })
    assert.matches("then also: process%-terminate %(SIGINT from pid 4712%)", text)
    assert.matches("\n3%d%.%d s of the total are left\n", text)
  end)

  it("names the program that sent the signal, while it lives", function()
    app(function() tide.shutdown:task("service-stop", "slow", function() tide.sleep(3) end) end)
    life:signal("SIGTERM", math.tointeger(require("moontide.core").host.pid))
    local data, text = inspecting.ask(life, "why")
    assert.is_string(data.reason.program)
    assert.matches("sent by ", text)
  end)

  it("names the tasks that the last phase ends", function()
    app(function()
      tide.root:start({ name = "stubborn" }, function()
        tide.shield(60, function() tide.sleep(30) end)
      end)
    end)
    life:advance(1)
    life:signal "SIGTERM"
    life:advance(0.5)
    local lines = inspecting.ask(life, "why").waiting_for
    assert.matches("^shutdown phase actor%-system%-terminate: terminate", lines[1])
    assert.matches("^1 task of scope root: stubborn %(.-console_phases_and_why_spec.lua:%d+%)$",
      lines[2])
  end)
end)
