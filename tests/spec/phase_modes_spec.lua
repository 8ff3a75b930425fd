-- How the tasks of a phase, and the phases of a pipeline, share their time.
local lifecycle = require "support.lifecycle"

describe("the tasks of a phase", function()
  -- When each of three tasks of half a second began, in tenths of a second, and the total.
  local function run(mode)
    local began, from = {}, nil
    local life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.config { shutdown = { timeout = "60s" } }
      tide.shutdown:phase("mine", { after = "service-stop", timeout = "20s", mode = mode })
      for _, name in ipairs { "a", "b", "c" } do
        tide.shutdown:task("mine", name, function()
          began[#began + 1] = ("%s %.1f"):format(name, tide.now() - from)
          tide.sleep(0.5)
        end)
      end
    end)
    from = life.tide.now()
    life:signal "SIGTERM"
    life:advance(10)
    assert.equal(0, life.code)
    return began
  end

  it("run at the same time by default", function()
    assert.same({ "a 0.0", "b 0.0", "c 0.0" }, run())
    assert.same({ "a 0.0", "b 0.0", "c 0.0" }, run "parallel")
  end)

  it("run one after the other where the mode says so, first or last registered first", function()
    assert.same({ "a 0.0", "b 0.5", "c 1.0" }, run "fifo")
    assert.same({ "c 0.0", "b 0.5", "a 1.0" }, run "lifo")
  end)

  it("share the time of the phase when they run one after the other", function()
    local ran = {}
    local life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.shutdown:phase("mine", { after = "service-stop", timeout = "1s", mode = "fifo" })
      for i = 1, 3 do
        tide.shutdown:task("mine", "t" .. i, function() ran[#ran + 1] = i tide.sleep(0.7) end)
      end
    end)
    life:signal "SIGTERM"
    life:advance(5)
    assert.same({ 1, 2 }, ran)
    local by_name = life.tide.shutdown.tasks.mine.by_name
    assert.equal("ok", by_name.t1.outcome)
    assert.equal("timed_out", by_name.t2.outcome)
    assert.equal("skipped", by_name.t3.outcome)
    assert.equal(0, life.code)
  end)
end)

describe("the phases of a shutdown", function()
  it("that do not depend on one another run at the same time where parallel is set", function()
    local ended = {}
    local life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.config { shutdown = { parallel = true } }
      local names = { left = "service-stop", right = "service-stop" }
      for name, after in pairs(names) do
        tide.shutdown:phase(name, { after = after, before = "before-cluster-shutdown" })
        tide.shutdown:task(name, "work", function() tide.sleep(1) ended[name] = tide.now() end)
      end
      tide.shutdown:task("cluster-leave", "next", function() ended.next = tide.now() end)
    end)
    local from = life.tide.now()
    life:signal "SIGTERM"
    life:advance(5)
    assert.equal(0, life.code)
    for _, name in ipairs { "left", "right", "next" } do
      assert.is_true(ended[name] - from >= 0.99 and ended[name] - from < 1.1, name)
    end
  end)
end)
