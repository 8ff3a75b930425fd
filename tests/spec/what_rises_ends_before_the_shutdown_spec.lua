-- A shutdown that comes while the process still rises waits for what it cuts: no stop runs beside
-- a start, and no hook beside the main chunk, that is still cleaning up.
local lifecycle = require "support.lifecycle"

describe("a shutdown in the middle of the rise", function()
  local events

  local function note(text)
    return function() events[#events + 1] = text end
  end

  -- A variable whose cleanup takes a fifth of a second.
  local function slow_cleanup(tide, name)
    return setmetatable({}, { __close = function()
      tide.shield("1s", function() tide.sleep(0.2) end)
      events[#events + 1] = name .. " cleaned up"
    end })
  end

  before_each(function() events = {} end)

  it("waits for the step that it cuts, before it stops what had started", function()
    local life = lifecycle.new(function(tide)
      tide.component("one", { start = function() end, stop = note "one stopped" })
      tide.component("two", { needs = "one", start = function()
        local _ <close> = slow_cleanup(tide, "two")
        tide.sleep(60)
      end })
    end)
    life:signal "SIGTERM"
    assert.same({}, events)
    life:advance(1)
    assert.same({ "two cleaned up", "one stopped" }, events)
    assert.equal(0, life.code)
  end)

  it("waits for the main chunk that it cuts, before its hooks run", function()
    local life = lifecycle.new(function(tide)
      tide.shutdown:task("before-service-unbind", "first", note "first")
      tide.shutdown:on("hook", note "hook")
      local _ <close> = slow_cleanup(tide, "main")
      tide.sleep(20)
      events[#events + 1] = "main went on"
    end)
    life:signal "SIGTERM"
    assert.same({}, events)
    life:advance(1)
    assert.same({ "main cleaned up", "first", "hook" }, events)
    assert.equal(0, life.code)
  end)
end)
