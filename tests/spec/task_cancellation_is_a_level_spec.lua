local async = require "support.async"
local it = async.virtual()
local task = require "moontide.task"
local now = async.core.clock.now

describe("a cancellation", function()
  it("raises at the await point, and again at each later one", function()
    local errors = {}
    local t = task.spawn(function()
      for i = 1, 3 do
        errors[i] = select(2, pcall(task.sleep, 100))
      end
    end)
    task.sleep(1)
    assert.is_true(t:cancel("no longer needed"))
    assert.is_false(t:cancel("again"))
    assert.equal("cancelled", t:join())
    for i = 1, 3 do
      assert.equal("cancelled", errors[i].kind)
      assert.equal("no longer needed", errors[i].reason)
      assert.equal("cancelled: no longer needed", tostring(errors[i]))
      assert.is_true(task.is_cancelled(errors[i]))
    end
    assert.is_false(task.is_cancelled("cancelled"))
  end)

  it("counts even if the function then returns as if nothing had been", function()
    local t = task.spawn(function() pcall(task.sleep, 100) return "fine" end)
    task.sleep(1)
    t:cancel()
    assert.equal("cancelled", t:join())
    assert.is_true(task.is_cancelled(select(2, pcall(t.await, t))))
  end)

  it("does not hide a failure of the cleanup", function()
    local t = task.start({ detached_errors = true }, function()
      pcall(task.sleep, 100)
      error("cleanup broke", 0)
    end)
    task.sleep(1)
    t:cancel()
    assert.equal("failed", t:join())
    assert.equal("cleanup broke", t.error)
  end)

  it("comes too late for a task that never awaits again", function()
    local gate = task.event()
    local t = task.spawn(function() gate:wait() return "done" end)
    task.sleep(1)
    gate:set()
    t:cancel() -- it was woken already
    assert.equal("done", t:await())
    assert.is_false(t:cancel())
  end)

  it("ends a task that has not started without running it", function()
    local ran = false
    local t = task.spawn(function() ran = true end)
    t:cancel()
    assert.equal("cancelled", t:join())
    assert.is_false(ran)
  end)

  it("reaches everything below at once", function()
    local from, tasks = now(), {}
    local function tree(depth)
      for _ = 1, 2 do
        tasks[#tasks + 1] = task.spawn(function()
          if depth > 1 then
            tree(depth - 1)
          end
          task.sleep(100)
        end)
      end
    end
    local t = task.spawn(function() tree(4) end)
    task.sleep(1)
    t:cancel()
    assert.equal("cancelled", t:join())
    assert.equal(30, #tasks)
    for _, each in ipairs(tasks) do
      assert.equal("cancelled", each.outcome)
    end
    assert.is_true(now() - from < 2)
  end)

  it("reaches what awaits in every way", function()
    local ways = {
      event = function() task.event():wait() end,
      receive = function() task.channel():receive() end,
      send = function() task.channel():send(1) end,
      waiter = function() task.waiter("w"):wait() end,
      sleep = function() task.sleep(100) end,
      task = function() task.root:spawn(task.sleep, 3):await() end,
      scope = function() task.new_scope("s"):spawn(task.sleep, 3).scope:join() end,
      timeout = function() task.timeout(100, task.sleep, 50) end,
    }
    for name, way in pairs(ways) do
      local t = task.spawn(way)
      task.sleep(1)
      t:cancel()
      assert.equal("cancelled", t:join(), name)
    end
    task.sleep(10)
  end)

  it("reaches one that only takes turns", function()
    local t = task.spawn(function() while true do task.sleep(0) end end)
    for _ = 1, 10 do
      task.sleep(0)
    end
    t:cancel()
    assert.equal("cancelled", t:join())
  end)

  it("in a shield waits for its end, but no longer than it says", function()
    local steps = {}
    local t = task.spawn(function()
      task.shield(5, function()
        task.sleep(2)
        steps[1] = "cleanup done"
      end)
      task.sleep(1)
      steps[2] = "never"
    end)
    task.sleep(1)
    t:cancel()
    assert.equal("cancelled", t:join())
    assert.same({ "cleanup done" }, steps)

    local from = now()
    local long = task.spawn(function() task.shield(3, task.sleep, 100) end)
    task.sleep(1)
    long:cancel()
    assert.equal("cancelled", long:join())
    assert.is_true(math.abs(now() - from - 3) < 0.01)
  end)

  it("spares the tasks that a shield started", function()
    local finished = false
    local t = task.spawn(function()
      task.shield(5, function()
        task.spawn(function() task.sleep(2) finished = true end)
        task.sleep(1)
      end)
    end)
    task.sleep(0.5)
    t:cancel()
    t:join()
    assert.is_true(finished)
  end)

  it("makes the end of the shield the deadline", function()
    local before, after
    local t = task.spawn(function()
      task.shield(5, function()
        before = task.deadline()
        task.sleep(2)
        after = task.deadline()
      end)
    end)
    local from = now()
    task.sleep(1)
    t:cancel()
    t:join()
    assert.is_nil(before)
    assert.is_true(math.abs(after - from - 5) < 0.01)
  end)

  it("lets a shield return values and raise errors", function()
    assert.same({ 1, nil, 3, n = 3 }, table.pack(task.shield(1, function() return 1, nil, 3 end)))
    local ok, err = pcall(task.shield, 1, function() error("inside", 0) end)
    assert.same({ false, "inside" }, { ok, err })
  end)
end)
