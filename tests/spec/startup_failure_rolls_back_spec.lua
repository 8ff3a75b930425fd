local lifecycle = require "support.lifecycle"

describe("a startup that fails", function()
  local events, tide

  local function component(name, fields)
    fields.stop = fields.stop or function() events[#events + 1] = "stop " .. name end
    tide.component(name, fields)
  end

  local function app(second)
    events = {}
    return lifecycle.new(function(given)
      tide = given
      component("one", { start = function() events[#events + 1] = "start one" end })
      component("two", { needs = "one", start = second })
      component("three", { needs = "two", start = function() events[#events + 1] = "start 3" end })
    end)
  end

  it("stops exactly what started, and exits 1", function()
    local life = app(function() error("E1", 0) end)
    life:advance(5)
    assert.same({ "start one", "stop one" }, events)
    assert.equal(1, life.code)
    assert.equal("stopped", life.state)
    assert.is_falsy(life.was_ready)
  end)

  it("reports the first error; that of the rollback is secondary", function()
    events = {}
    local life = lifecycle.new(function(given)
      tide = given
      component("one", { start = function() end, stop = function() error("E2", 0) end })
      component("two", { needs = "one", start = function() error("E1", 0) end })
    end)
    life:advance(5)
    assert.equal(1, life.code)
    local errors = life:logged { level = "error" }
    assert.equal(2, #errors) -- what failed, and the exit that names it
    assert.matches("task two of phase two failed: E1; startup has failed", errors[1].message)
    assert.matches("E1", errors[2].fields.why)
    local warnings = life:logged { level = "warn", task = "one" }
    assert.equal(1, #warnings)
    assert.equal("E2", warnings[1].fields.error)
  end)

  it("cancels a start in progress before anything is stopped", function()
    local life = app(function()
      local _ <close> = setmetatable({}, { __close = function()
        events[#events + 1] = "two ended"
      end })
      tide.sleep(60)
    end)
    life:advance(1)
    life:signal("SIGTERM")
    life:advance(1)
    assert.same({ "start one", "two ended", "stop one" }, events)
    assert.equal(0, life.code)
  end)

  it("cuts the sleep between two attempts", function()
    events = {}
    local attempts = 0
    local life = lifecycle.new(function(given)
      tide = given
      component("one", { start = function() end })
      component("two", {
        needs = "one", retry = tide.retry { base = "30s" },
        start = function() attempts = attempts + 1 error("refused", 0) end,
      })
    end)
    life:advance(10)
    life:signal("SIGTERM")
    life:advance(0.1)
    assert.equal(1, attempts)
    assert.same({ "stop one" }, events)
    assert.equal(0, life.code)
  end)

  it("names the dependents of a component that gave up as skipped", function()
    local life = lifecycle.new(function(given)
      tide = given
      tide.component("db", {
        retry = tide.retry { base = 1, attempts = 2 }, start = function() error("no db", 0) end,
      })
      tide.component("api", { needs = "db", start = function() end })
    end)
    life:advance(10)
    assert.equal(1, life.code)
    local skipped = life:logged { phase = "api", outcome = "skipped" }
    assert.equal("db failed", skipped[1].fields.why)
  end)

  it("ends at once when a start asks for the exit", function()
    events = {}
    local life = lifecycle.new(function(given, world)
      tide = given
      component("one", { start = function() end })
      component("two", { needs = "one", start = function()
        world.os_exit(3)
        events[#events + 1] = "went on"
      end })
    end)
    life:advance(0.5)
    assert.same({ "stop one" }, events)
    assert.equal(3, life.code)
  end)

  it("counts a cancelled task as a failure, not as a success", function()
    local life = lifecycle.new(function(given)
      tide = given
      tide.startup:phase("a", function() require("moontide.task").current():cancel("by itself")
        tide.sleep(1) end)
      component("late", { start = function() events[#events + 1] = "late" end })
    end)
    life:advance(5)
    assert.equal(1, life.code)
    assert.equal("cancelled", life.tide.startup.tasks.a.by_name.a.outcome)
  end)
end)
