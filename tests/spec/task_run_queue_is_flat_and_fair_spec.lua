local async = require "support.async"
local it = async.virtual()
local task = require "moontide.task"

describe("the run queue", function()
  it("never resumes a task from inside another", function()
    local depth, deepest = 0, 0
    local function step()
      depth = depth + 1
      deepest = math.max(deepest, depth)
      depth = depth - 1
    end
    local e = task.event()
    local tasks = {}
    for i = 1, 1000 do
      tasks[i] = task.spawn(function() e:wait() step() end)
    end
    task.sleep(0)
    e:set()
    assert.equal(0, deepest)
    assert.is_false(task.pump())
    assert.equal(0, deepest)
    for i = 1, 1000 do
      tasks[i]:await()
    end
    assert.equal(1, deepest)
  end)

  it("carries a chain of awaits far deeper than the C stack", function()
    local function chain(n)
      if n == 0 then
        return 0
      end
      return task.spawn(chain, n - 1):await() + 1
    end
    assert.equal(2000, chain(2000))
  end)

  it("takes turns: first come, first served", function()
    local order = {}
    local tasks = {}
    for i = 1, 3 do
      tasks[i] = task.spawn(function()
        for _ = 1, 3 do
          order[#order + 1] = i
          task.sleep(0)
        end
      end)
    end
    for i = 1, 3 do
      tasks[i]:await()
    end
    assert.same({ 1, 2, 3, 1, 2, 3, 1, 2, 3 }, order)
  end)

  it("gives coroutines back to a pool, but not one that died", function()
    local function coroutine_of(fn)
      local co
      task.start({ detached_errors = true }, function()
        co = coroutine.running()
        fn()
      end):join()
      return co
    end
    local first = coroutine_of(function() end)
    assert.equal(first, coroutine_of(function() end))
    for _, last in ipairs { coroutine.yield, function() error("x") end } do
      local dead = coroutine_of(last)
      assert.equal("dead", coroutine.status(dead))
      assert.not_equal(dead, coroutine_of(function() end))
    end
  end)
end)

describe("one turn of the pump", function()
  require("busted").it("ends after its budget although tasks are always ready", function()
    local stop, turns = false, 0
    for _ = 1, 3 do
      task.root:spawn(function()
        while not stop do
          turns = turns + 1
          task.sleep(0)
        end
      end)
    end
    assert.is_true(task.pump())
    assert.is_true(turns > 3 and turns < 10000)
    stop = true
    async.turn_until(function() return task.counts().live == 0 end, "the three tasks")
  end)
end)
