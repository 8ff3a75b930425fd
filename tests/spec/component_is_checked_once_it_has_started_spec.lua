-- The check of a component is part of the readiness from its start on; before, there is nothing to
-- be asked, and a startup that fails asks nothing.
local lifecycle = require "support.lifecycle"

describe("the check of a component", function()
  it("runs once the component has started, and goes on", function()
    local asked, up = 0, false
    local life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.component("db", {
        start = function() tide.sleep(1) up = true end,
        check = function()
          assert(up, "asked before it has started")
          asked = asked + 1
          return { pool = 4 }
        end,
      })
    end)
    life:advance(0.9)
    assert.equal(0, asked)
    life:advance(0.2)
    assert.equal("ready", life.state)
    assert.equal(1, asked)
    assert.is_true(life.health.db.ok)
    assert.matches('"pool":4', life.health.db.extra, 1, true)
    life:advance(12)
    assert.is_true(asked >= 3)
  end)

  it("takes options, and is not ok where it says so", function()
    local life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.component("cache", {
        start = function() end,
        check = { every = "1s", critical = false, function() return false, "gone" end },
      })
    end)
    life:advance(0.5)
    assert.is_false(life.health.cache.ok)
    assert.is_false(life.health.cache.critical)
    assert.matches("gone", life.health.cache.extra)
  end)

  it("never runs when the start has failed", function()
    local asked = 0
    local life = lifecycle.new(function(tide)
      tide.component("db", {
        start = function() error("refused", 0) end,
        check = function() asked = asked + 1 return true end,
      })
    end)
    life:advance(10)
    assert.equal(1, life.code)
    assert.equal(0, asked)
  end)
end)
