local lifecycle = require "support.lifecycle"

describe("a readiness check", function()
  local result, life

  -- An app that stays up, with one check whose function returns what `result` holds.
  local function app(opts)
    life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.check("db", opts or { every = "5s" }, function()
        if result.raise then error(result.raise, 0) end
        if result.sleep then tide.sleep(result.sleep) end
        return table.unpack(result, 1, 2)
      end)
    end)
    return life
  end

  it("is ok for true and for a table, which goes into the body", function()
    result = { true }
    assert.is_true(app().health.db.ok)
    result = { { depth = 3 } }
    life:advance(5)
    assert.is_true(life.health.db.ok)
    assert.matches("\"depth\":3", life.health.db.extra)
    assert.matches("\"latencyMs\":0", life.health.db.extra)
  end)

  it("has one ok in its body, whatever its table says, and none that JSON cannot say", function()
    result = { { ok = false, depth = 3 } }
    assert.is_true(app().health.db.ok)
    assert.not_matches("ok", life.health.db.extra)
    result = { { depth = print } }
    life:advance(5)
    assert.is_true(life.health.db.ok)
    assert.equal("\"latencyMs\":0", life.health.db.extra)
  end)

  it("counts its first result at once, the later ones in a row", function()
    result = { nil, "refused" }
    app { every = "5s", failures = 3, successes = 2 }
    assert.is_false(life.health.db.ok)
    assert.matches("refused", life.health.db.extra)
    result = { true }
    life:advance(5)
    assert.is_false(life.health.db.ok)
    life:advance(5)
    assert.is_true(life.health.db.ok)
    result = { false }
    life:advance(10)
    assert.is_true(life.health.db.ok)
    life:advance(5)
    assert.is_false(life.health.db.ok)
  end)

  it("is not ok for a raise, for nothing, and for a number", function()
    for _, case in ipairs { { raise = "boom" }, {}, { 7 } } do
      result = case
      assert.is_false(app().health.db.ok)
    end
    assert.matches("returned a number", life.health.db.extra)
  end)

  it("is late after its timeout, and never runs twice at once", function()
    result = { true, sleep = 60 }
    app { every = "1s", timeout = "2s" }
    life:advance(1.9)
    assert.is_nil(life.health.db)
    life:advance(0.2)
    assert.is_false(life.health.db.ok)
    assert.matches("timed out", life.health.db.extra)
  end)

  it("names its timeout at whatever time of the clock it passes", function()
    result = { true, sleep = 60 }
    app { every = "1.0007s", timeout = "200ms", failures = 1 }
    for i = 1, 200 do
      life:advance(1.0007)
      assert.matches("the check's timeout is 200ms", life.health.db.extra, 1, true, "run " .. i)
    end
  end)

  it("says when its result is stale: after three periods", function()
    result = { true }
    app { every = "5s" }
    assert.is_true(math.abs(life.health.db.expires_at - life.tide.now() - 15) < 0.01)
  end)

  it("does not hold up ready", function()
    result = { true, sleep = 0.5 }
    assert.equal("ready", app().state)
  end)

  it("does not keep the process up", function()
    life = lifecycle.new(function(tide) tide.check("x", function() return true end) end)
    life:advance(1)
    assert.equal(0, life.code)
  end)

  it("goes away when it is withdrawn", function()
    result = { true }
    local handle
    life = lifecycle.new(function(tide, world)
      world.alive = true
      handle = tide.check("x", function() return true end)
    end)
    handle:cancel()
    life:advance(10)
    assert.is_nil(life.health.x)
    assert.equal(0, require("moontide.background").scope:count())
  end)

  it("refuses what is not an option, with the nearest name", function()
    life = lifecycle.new(function(tide)
      tide.check("x", { evry = "5s" }, function() end)
    end)
    assert.equal(78, life.code)
    local message = life:logged { level = "error" }[1].message
    assert.matches("readiness_check_spec.lua:%d+: check \"x\": unknown option \"evry\"", message)
    assert.matches("did you mean \"every\"", message)
  end)
end)
