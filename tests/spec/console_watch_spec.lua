-- `watch` evaluates an expression again and again and prints the changes, bounded in every way.
local lifecycle = require "support.lifecycle"
local steering = require "support.steering"

local life, steer, tide, printed

describe("watch", function()
  before_each(function()
    life = lifecycle.new(function(library, world) tide, world.alive = library, true end)
    steer = steering.new(life)
    printed = {}
    steer.session.env = setmetatable({
      print = function(text) printed[#printed + 1] = text end, depth = 1,
    }, { __index = _G })
  end)

  after_each(function() steer:finish() end)

  it("prints the first value and each that differs, with the time", function()
    local watching = steer:start("watch", "depth", "500ms", 6)
    life:advance(0.7)
    steer.session.env.depth = 7
    life:advance(3)
    assert.equal("ok", watching.outcome)
    assert.same({ "    0.00 s  1", "    1.00 s  7", "    2.50 s  6 looks, 1 change" }, printed)
  end)

  it("looks ten times every half a second by itself", function()
    local watching = steer:start("watch", "depth")
    life:advance(4.4)
    assert.is_nil(watching.outcome)
    life:advance(0.2)
    assert.equal("ok", watching.outcome)
    assert.matches("10 looks, 0 changes", printed[2])
  end)

  it("shows a failure as a value, and goes on", function()
    local watching = steer:start("watch", "depth.x", 1, 3)
    steer.session.env.depth = { x = "well" }
    life:advance(3)
    assert.equal("ok", watching.outcome)
    assert.matches("error: watch:1: attempt to index a number value", printed[1])
    assert.matches("\"well\"", printed[2])
  end)

  it("may await in its expression, and keeps its times", function()
    steer.session.env.slow = function() tide.sleep(0.3) return life.core.clock.now() end
    steer:start("watch", "slow()", 1, 3)
    life:advance(4)
    assert.equal(4, #printed)
    assert.matches("^    2%.30 s  3 looks", printed[4])
  end)

  it("ends with its evaluation, also in the middle of the expression", function()
    for _, expression in ipairs { "depth", "sleep(60)" } do
      steer.session.env.sleep = tide.sleep
      local watching = steer:start("watch", expression, 1, 500)
      life:advance(2)
      watching:cancel "interrupted"
      life:turn()
      assert.equal("cancelled", watching.outcome)
    end
  end)

  it("says at once that an evaluation's time is too short for it", function()
    local watch = require "moontide.console.watch"
    local t = tide.task.start({ timeout = 30, scope = tide.root, detached_errors = true },
      watch.watch, steer.session, "depth", "500ms", 100)
    life:turn()
    assert.equal("failed", t.outcome)
    assert.equal("watch: 100 times every 500ms take 49.5s, the evaluation has 30s: at most 60 "
      .. "times, or give it more time", t.error)
    local fits = tide.task.start({ timeout = 30, scope = tide.root }, watch.watch, steer.session,
      "depth", "500ms", 60)
    life:advance(30)
    assert.equal("ok", fits.outcome)
  end)

  it("refuses what is no expression, too often, too long and too many", function()
    for _, case in ipairs {
      { "an expression is wanted, as a text: watch%(", nil }, { "an expression is wanted", 7 },
      { "this is no expression: .*watch:1:", "x =" }, { "this is no expression", "local x = 1" },
      { "this is no expression", "\27Lua" },
      { "interval is from 50ms to 1m", "depth", "10ms" }, { "from 50ms to 1m", "depth", "2m" },
      { "has no unit.*watch%(", "depth", "500" }, { "whole number from 1 to 1000", "depth", 1, 0 },
      { "whole number from 1 to 1000", "depth", 1, 1001 }, { "whole number", "depth", 1, "5x" },
    } do
      assert.matches(case[1], steer:refused("watch", case[2], case[3], case[4]))
    end
    assert.same({}, printed)
  end)
end)
