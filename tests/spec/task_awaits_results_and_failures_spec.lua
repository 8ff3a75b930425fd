local async = require "support.async"
local it = async.virtual()
local task = require "moontide.task"

describe("a task", function()
  it("gets its arguments and returns all its results", function()
    local t = task.spawn(function(...) return select("#", ...), ... end, 1, nil, "x", nil)
    assert.same({ 4, 1, nil, "x", nil, n = 5 }, table.pack(t:await()))
  end)

  it("may return nothing, one nil, or nils before a value", function()
    local function results(fn)
      return table.pack(task.spawn(fn):await())
    end
    assert.is_nil(results(function() end)[1])
    assert.is_nil(results(function() return nil end)[1])
    assert.same({ nil, nil, nil, 4, n = 4 }, results(function() return nil, nil, nil, 4 end))
  end)

  it("gets no argument when none was given", function()
    assert.equal(0, task.spawn(function(...) return select("#", ...) end):await())
  end)

  it("gives its results to everybody who awaits it, also after its end", function()
    local t = task.spawn(function() task.sleep(1) return "value" end)
    local results = task.all { function() return t:await() end, function() return t:await() end }
    assert.same({ "value", "value" }, results)
    assert.equal("value", t:await())
  end)

  it("does not start before its spawner awaits", function()
    local order = {}
    local t = task.spawn(function() order[#order + 1] = "child" end)
    order[#order + 1] = "spawner"
    t:await()
    assert.same({ "spawner", "child" }, order)
  end)

  it("raises its error, whatever value that is, in whoever awaits it", function()
    local value = { "an error" }
    local t = task.spawn(function() error(value) end)
    local ok, err = pcall(t.await, t)
    assert.is_false(ok)
    assert.equal(value, err)
    local nothing = task.spawn(function() error(nil) end)
    assert.same({ false, nil, n = 2 }, table.pack(pcall(nothing.await, nothing)))
    assert.equal("failed", nothing.outcome)
  end)

  it("can be joined without raising", function()
    local t = task.spawn(function() error("no", 0) end)
    assert.equal("failed", t:join())
    assert.equal("no", t.error)
  end)

  it("shows what it is", function()
    local gate = task.event("gate")
    local t = task.start({ name = "worker", kind = "test" }, function() gate:wait() end)
    assert.same({ "worker", "test", "ready" }, { t.name, t.kind, t.state })
    task.sleep(0)
    assert.same({ "waiting", "event gate" }, { t.state, t.waiting_on })
    local here = "task_awaits_results_and_failures_spec.lua:" .. debug.getinfo(1).currentline - 4
    assert.equal(here, t:site():sub(-#here))
    local joiner = task.spawn(function() t:await() end)
    task.sleep(1)
    assert.equal("task worker", joiner.waiting_on)
    assert.equal("running", task.current().state)
    gate:set()
    joiner:await()
    assert.same({ "done", "ok" }, { t.state, t.outcome })
    assert.is_nil(t.waiting_on)
    assert.is_true(t.ended_at - t.started_at >= 1)
    assert.equal("worker (ok)", tostring(t))
  end)

  it("sleeps as long as it says", function()
    local from = async.core.clock.now()
    task.sleep(1.5)
    assert.is_true(math.abs(async.core.clock.now() - from - 1.5) < 0.001)
    task.sleep("250ms")
    assert.is_true(math.abs(async.core.clock.now() - from - 1.75) < 0.001)
  end)

  it("refuses what is not a function or not a duration", function()
    assert.error_matches(function() task.spawn(42) end, "needs a function, got number")
    assert.has_error(function() task.sleep(-1) end)
    assert.has_error(function() task.sleep(0 / 0) end)
    assert.has_error(function() task.sleep("soon") end)
  end)
end)
