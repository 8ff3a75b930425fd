-- What has ended is not waited for: failures, siblings, components that are gone.
local lifecycle = require "support.lifecycle"

describe("a shutdown", function()
  local life

  -- Seconds from the signal to the end.
  local function took(main)
    life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.config { shutdown = { timeout = "60s" } }
      main(tide)
    end)
    local from = life.tide.now()
    life:signal "SIGTERM"
    life:advance(60)
    assert.equal("stopped", life.state)
    return life.tide.shutdown.run_state.ended_at - from
  end

  it("goes on at once when a stop has raised, whatever its timeout", function()
    local seconds = took(function(tide)
      tide.component("db", { stop = function() error "boom" end })
      tide.shutdown:task("service-stop", "bad", { timeout = "10s" }, function() error "boom" end)
    end)
    assert.is_true(seconds < 0.01, seconds .. " s")
    assert.equal(2, #life:logged { level = "warn", outcome = "failed" })
  end)

  it("lets the tasks of a phase wait at the same time", function()
    local seconds = took(function(tide)
      for i = 1, 10 do
        tide.shutdown:task("service-stop", "t" .. i, function() tide.sleep(0.3) end)
      end
    end)
    assert.is_true(seconds > 0.299 and seconds < 0.31, seconds .. " s")
  end)

  it("is a fact to the first task already, and to all who look", function()
    local seen
    took(function(tide)
      tide.shutdown:task("before-service-unbind", "first", function(reason)
        seen = { tide.state(), tide.shutdown:is_running(), tide.shutdown.reason == reason }
      end)
    end)
    assert.same({ "draining", true, true }, seen)
  end)

  it("begins at its first phase after a crash, too", function()
    local ran = {}
    life = lifecycle.new(function(tide, world)
      world.alive = true
      for _, name in ipairs(tide.shutdown.names) do
        tide.shutdown:task(name, "note", function() ran[#ran + 1] = name end)
      end
    end)
    life.uncaught("luv callback", "boom")
    life:advance(5)
    assert.same(life.tide.shutdown.graph:order(), ran)
    assert.equal(1, life.code)
  end)

  it("that was asked for before anybody waited ends those who wait later", function()
    local waiter
    life = lifecycle.new(function(tide)
      tide.startup:phase("asks", function()
        local completion = tide.shutdown:run "admin"
        waiter = tide.root:spawn(function() completion:await() end)
      end)
    end)
    life:advance(5)
    assert.equal(0, life.code)
    assert.equal("cancelled", waiter.outcome)
  end)
end)

describe("an inner drain that is longer than its phase", function()
  it("is refused when it was chosen, and clipped with a record when it was not", function()
    local chosen = lifecycle.new(function(tide)
      tide.config { shutdown = { drain = "10s",
        phases = { ["service-requests-done"] = { timeout = "5s" } } } }
    end)
    assert.equal(78, chosen.code)
    assert.matches("service%-requests%-done", chosen:logged({ level = "error" })[1].message)

    local clipped = lifecycle.new(function(tide, world)
      world.alive = true
      tide.config { shutdown = { timeout = "10s", linger = 0 } }
      tide.shutdown:builtin_task("service-requests-done", "drain:api", function()
        tide.sleep(30)
      end)
    end)
    assert.equal("ready", clipped.state)
    clipped:signal "SIGTERM"
    clipped:advance(11)
    assert.equal(0, clipped.code)
    local record = clipped:logged({ level = "warn", task = "drain:api" })[1]
    assert.matches("what was left of the shutdown total", record.message)
  end)
end)

describe("a parallel startup", function()
  it("takes a cancelled step for a failed one: what comes after it does not start", function()
    local started = {}
    local life = lifecycle.new(function(tide)
      tide.config { startup = { parallel = true } }
      tide.startup:phase("a", function()
        require("moontide.task").current():cancel "by itself"
        tide.sleep(1)
      end)
      tide.startup:phase("beside", function() tide.sleep(0.5) started[#started + 1] = "beside" end)
      tide.startup:phase("next", { after = "a" }, function() started[#started + 1] = "next" end)
      tide.startup:phase("last", { after = { "beside", "next" } }, function()
        started[#started + 1] = "last"
      end)
    end)
    life:advance(5)
    assert.equal(1, life.code)
    assert.same({}, started)
    assert.is_falsy(life.was_ready)
  end)
end)
