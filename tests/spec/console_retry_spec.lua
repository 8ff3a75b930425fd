-- `retry` runs a readiness check now; its result counts as any other.
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

describe("retry", function()
  after_each(function() steer:finish() end)

  it("shows the result, and serves it", function()
    local up = false
    app(function()
      tide.check("db", { every = 60 }, function() return up, "no route" end)
    end)
    assert.is_false(life.health.db.ok)
    assert.equal("check db is not ok after 0s: no route",
      steer:run("retry", "db", "again").text)
    up = true
    local value = steer:run("retry", "db", "the network is back")
    assert.equal("check db is ok after 0s", value.text)
    assert.is_true(value.ok)
    assert.is_true(life.health.db.ok)
    assert.same({ action = "retry", text = "db: the network is back" }, steer.audited[2])
  end)

  it("counts towards the number in a row that turns it, and says so", function()
    local up = true
    app(function()
      tide.check("db", { every = 60, failures = 2 }, function() return up, "no route" end)
    end)
    up = false
    assert.matches("not ok after 0s: no route\nserved is still ok: it turns with 2 failures in a "
      .. "row, this was number 1", steer:run("retry", "db", "look").text)
    assert.is_true(life.health.db.ok)
    steer:run("retry", "db", "look")
    assert.is_false(life.health.db.ok)
  end)

  it("does not run a check twice at a time: it takes the result of the run under way", function()
    local running, most = 0, 0
    app(function()
      tide.check("db", { every = 10, timeout = 5 }, function()
        running = running + 1
        most = math.max(most, running)
        tide.sleep(2)
        running = running - 1
        return true
      end)
    end)
    local early = steer:start("retry", "db", "during the first run")
    life:advance(2)
    assert.equal("ok", early.outcome)
    life:advance(7.5) -- half a second before its next turn
    local late = steer:start("retry", "db", "before the next run")
    local second = steer:start("retry", "db", "at the same time")
    life:advance(2)
    assert.same({ "ok", "ok" }, { late.outcome, second.outcome })
    life:advance(30)
    assert.equal(1, most)
  end)

  it("leaves the check alone when its asker is interrupted", function()
    app(function()
      tide.check("db", { every = 60, timeout = 5 }, function()
        tide.sleep(2)
        return true
      end)
    end)
    life:advance(3)
    local asker = steer:start("retry", "db", "look")
    life:advance(1)
    asker:cancel "interrupted"
    life:turn()
    assert.equal("cancelled", asker.outcome)
    life:advance(2)
    assert.is_true(life.health.db.ok)
    local next_one = steer:start("retry", "db", "look")
    life:advance(2)
    assert.equal("ok", next_one.outcome)
  end)

  it("shows a check that raises, and one that hangs", function()
    local how = "raise"
    app(function()
      tide.check("db", { every = 60, timeout = 0.2 }, function()
        if how == "raise" then error "it broke" end
        tide.sleep(9)
      end)
    end)
    assert.matches("not ok after 0s: .*it broke", steer:run("retry", "db", "look").text)
    how = "hang"
    local asked = steer:start("retry", "db", "look")
    life:advance(1)
    assert.matches("not ok after 200ms: .*the check's timeout is 200ms", asked.value.text)
  end)

  it("refuses unknown names, heartbeats, checks that have not begun, and no reason", function()
    app(function()
      tide.check("db", function() return true end)
      tide.heartbeat("mill", { every = 1 })
      tide.startup:phase("slow", function() tide.sleep(5) end)
    end)
    assert.matches("check db: it has not begun", steer:refused("retry", "db", "look"))
    life:advance(6)
    assert.equal("retry: unknown check \"dbb\"; did you mean \"db\"?",
      steer:refused("retry", "dbb", "look"))
    assert.matches("mill is a heartbeat", steer:refused("retry", "mill", "look"))
    assert.matches("the name of a readiness check is wanted", steer:refused("retry", nil, "look"))
    assert.matches("a reason is wanted.*retry%(\"db\"", steer:refused("retry", "db"))
  end)
end)
