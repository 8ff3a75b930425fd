local lifecycle = require "support.lifecycle"

describe("startup", function()
  local events, life

  local function note(name)
    return function() events[#events + 1] = name end
  end

  before_each(function() events = {} end)

  it("is sequential in the order of declaration, and then ready", function()
    life = lifecycle.new(function(tide, world)
      world.alive = true
      for _, name in ipairs { "c", "a", "b" } do
        tide.startup:phase(name, function() tide.sleep(1) events[#events + 1] = name end)
      end
    end)
    assert.equal("starting", life.state)
    life:advance(3)
    assert.same({ "c", "a", "b" }, events)
    assert.equal("ready", life.state)
    assert.equal(1, #life:logged { message = "^ready$" })
  end)

  it("runs phases whose dependencies are met at the same time where parallel is set", function()
    life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.config { startup = { parallel = true } }
      tide.startup:phase("a", function() tide.sleep(1) end)
      tide.startup:phase("b", function() tide.sleep(1) end)
      tide.startup:phase("c", { after = { "a", "b" } }, note "c")
    end)
    life:advance(1.1)
    assert.equal("ready", life.state)
    assert.same({ "c" }, events)
  end)

  it("goes on after a failure where on_fail is warn", function()
    life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.startup:phase("search", { on_fail = "warn" }, function() error("no search", 0) end)
      tide.startup:phase("next", note "next")
    end)
    life:advance(1)
    assert.same({ "next" }, events)
    assert.equal("ready", life.state)
    assert.equal(1, #life:logged { level = "warn", phase = "search", task = "search" })
  end)

  it("bounds one attempt by the phase's timeout and all of them by give_up_after", function()
    local attempts = 0
    life = lifecycle.new(function(tide)
      tide.startup:phase("db", {
        timeout = "2s", on_fail = tide.retry { base = "1s", max = "1s", give_up_after = "10s" },
      }, function()
        attempts = attempts + 1
        tide.sleep(60)
      end)
    end)
    life:advance(9.9)
    assert.is_nil(life.code)
    life:advance(0.2)
    assert.equal(1, life.code)
    assert.equal(4, attempts) -- from 0, 3, 6 and 9 s on, the last with a second left
    assert.equal(4, life.tide.startup.tasks.db.by_name.db.attempts)
    assert.matches("give_up_after", life:logged { level = "error" }[1].message)
  end)

  it("does not retry what is permanent", function()
    local attempts = 0
    life = lifecycle.new(function(tide)
      tide.startup:phase("db", { on_fail = tide.retry { base = "1s" } }, function()
        attempts = attempts + 1
        error(tide.permanent "wrong password")
      end)
    end)
    life:advance(5)
    assert.equal(1, attempts)
    assert.equal(1, life.code)
    assert.matches("wrong password", life:logged { level = "error" }[1].message)
  end)

  it("shares ctx between tasks, each with a deadline of its own", function()
    local seen
    life = lifecycle.new(function(tide)
      tide.startup:phase("db", { timeout = "3s" }, function(ctx)
        ctx.db = "DB"
        assert.equal(3, math.floor(ctx:remaining() + 0.5))
      end)
      tide.startup:phase("use", function(ctx)
        seen = { ctx.db, math.floor(ctx:deadline() - tide.now() + 0.5) }
        assert.has_error(function() ctx.deadline = 1 end)
      end)
      tide.shutdown:task("service-stop", "x", function(_, ctx) seen[3] = ctx.db end)
    end)
    life:advance(1)
    assert.same({ "DB", 30, "DB" }, seen)
  end)

  it("names the right option for one that belongs to shutdown", function()
    life = lifecycle.new(function(tide)
      tide.startup:phase("a", {})
      tide.startup:task("a", "x", { recover = true }, note "x")
    end)
    assert.equal(78, life.code)
    assert.matches("recover is an option of a shutdown phase",
      life:logged { level = "error" }[1].message)
  end)

  it("fails when its total is over, and says that it was the total", function()
    life = lifecycle.new(function(tide)
      tide.config { startup = { timeout = "8s" } }
      tide.startup:phase("a", { timeout = "8s" }, function() tide.sleep(60) end)
    end)
    life:advance(8)
    assert.equal(1, life.code)
    assert.matches("what was left of the startup total", life:logged { level = "error" }[1].message)
  end)

  it("fails in time when a task waits for nothing, and nothing else keeps the loop", function()
    life = lifecycle.new(function()
      local startup = require "moontide.startup"
      startup:phase("a", { timeout = "2s" }, function()
        require("moontide.task").waiter("nobody"):wait()
      end)
    end)
    life:advance(2)
    assert.equal(1, life.code)
    local record = life:logged { level = "error", task = "a" }[1]
    assert.matches("timed out after 2 s: the timeout of phase a, 2s", record.message)
  end)

  it("arms the watchdog for its total and lets go of it at the end", function()
    life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.startup:phase("a", function() tide.sleep(1) end)
    end)
    assert.is_number(life.totals.startup)
    assert.equal("a", life.phase)
    assert.equal("main chunk", life.places[1].what)
    assert.is_true(life.places[1].finished)
    assert.equal("a/a", life.places[2].what)
    assert.matches("startup_pipeline_spec.lua:%d+", life.places[2].site)
    life:advance(1)
    assert.is_nil(life.totals.startup)
    assert.is_true(life.places[2].finished)
    life:signal "SIGTERM"
    assert.equal(0, life.code)
  end)

  it("writes one record for a phase of very many tasks", function()
    life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.startup:phase("many", {})
      for i = 1, 1000 do tide.startup:task("many", "t" .. i, function() tide.sleep(0.1) end) end
    end)
    life:advance(1)
    assert.equal("ready", life.state)
    assert.equal(1, #life:logged { phase = "many" })
    assert.equal(1000, life:logged { phase = "many" }[1].fields.tasks)
    assert.equal("ok", life.tide.startup.tasks.many.by_name.t777.outcome)
  end)

  it("runs a disabled phase's tasks not at all, with one record of their count", function()
    life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.config { startup = { phases = { a = { enabled = false } } } }
      tide.startup:phase("a", note "a")
      tide.startup:phase("b", note "b")
    end)
    assert.same({ "b" }, events)
    assert.equal(1, life:logged { level = "info", message = "disabled: a" }[1].fields.tasks)
  end)

  it("exits 78 and starts nothing for a graph that cannot be", function()
    life = lifecycle.new(function(tide)
      tide.startup:phase("a", { after = "b" }, note "a")
      tide.startup:phase("b", { after = "a" }, note "b")
    end)
    assert.equal(78, life.code)
    assert.same({}, events)
    assert.equal("stopped", life.state)
    assert.equal(0, #life:logged { level = "info" })
  end)

  it("exits 1 for the same with exit_codes = seed", function()
    life = lifecycle.new(function(tide)
      tide.config { exit_codes = "seed" }
      tide.startup:phase("a", { after = "nowhere" })
    end)
    assert.equal(1, life.code)
  end)

  it("exits 1 through the pipeline for an error of the script's own", function()
    life = lifecycle.new(function(tide)
      tide.shutdown:on("hook", note "hook")
      return (nil).field
    end)
    life:advance(1)
    assert.same({ "hook" }, events)
    assert.equal(1, life.code)
    assert.equal("uncaught-error", life.tide.shutdown.reason.kind)
  end)
end)

describe("the service profile", function()
  it("declares sixteen phases, each nothing until it has a task", function()
    local life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.profiles.service()
    end)
    assert.equal(16, #life.tide.startup.names)
    assert.equal("config", life.tide.startup.names[1])
    assert.equal("ready", life.tide.startup.names[16])
    assert.equal("ready", life.state)
  end)

  it("finds all faults of boot-validation before it fails", function()
    local life = lifecycle.new(function(tide)
      tide.profiles.service()
      tide.startup:task("boot-validation", "a", function() error("no A", 0) end)
      tide.startup:task("boot-validation", "b", function() tide.sleep(0.1) error("no B", 0) end)
      tide.startup:task("db", "never", function() error("ran", 0) end)
    end)
    life:advance(1)
    assert.equal(1, life.code)
    assert.matches("boot%-validation found 2 faults: a: no A; b: no B",
      life:logged { level = "error" }[1].message)
    assert.equal(0, #life:logged { task = "never" })
  end)

  it("retries db with growing waits", function()
    local at = {}
    local life = lifecycle.new(function(tide)
      tide.profiles.service()
      tide.component("db", { start = function()
        at[#at + 1] = math.floor(tide.now() + 0.5)
        error("refused", 0)
      end })
    end)
    life:advance(20)
    assert.same({ 1, 2, 4, 8 }, { at[2] - at[1], at[3] - at[2], at[4] - at[3], at[5] - at[4] })
  end)
end)
