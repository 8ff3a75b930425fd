local async = require "support.async"
local it = async.virtual()
local task = require "moontide.task"
local now = async.core.clock.now

describe("a scope", function()
  it("keeps its owner alive until the last of its tasks has ended", function()
    local from, order = now(), {}
    local t = task.spawn(function()
      task.spawn(function()
        task.spawn(function() task.sleep(3) order[#order + 1] = "grandchild" end)
        order[#order + 1] = "child"
      end)
      order[#order + 1] = "parent"
      return "result"
    end)
    assert.equal("result", t:await())
    assert.same({ "parent", "child", "grandchild" }, order)
    assert.is_true(now() - from >= 3)
  end)

  it("shows a task that only waits for its children as waiting", function()
    local t = task.start({ name = "parent" }, function()
      task.spawn(function() task.sleep(1) end)
    end)
    task.sleep(0.5)
    assert.same({ "waiting", "the tasks of parent" }, { t.state, t.waiting_on })
    t:await()
  end)

  it("cancels its tasks when its owner's function fails", function()
    local child
    local t = task.start({ detached_errors = true }, function()
      child = task.spawn(function() task.sleep(100) end)
      task.sleep(1)
      error("broken", 0)
    end)
    assert.equal("failed", t:join())
    assert.equal("cancelled", child.outcome)
    assert.equal("broken", t.error)
  end)

  it("does not disturb siblings of a plain spawn that failed", function()
    local failed, other
    local t = task.spawn(function()
      failed = task.start({ detached_errors = true }, function() error("no") end)
      other = task.spawn(function() task.sleep(1) return "fine" end)
    end)
    assert.equal("ok", t:join())
    assert.same({ "failed", "ok" }, { failed.outcome, other.outcome })
  end)

  it("starts nothing more once it is cancelled", function()
    local scope, ran = task.new_scope("closed"), false
    scope:cancel("over")
    local t = scope:spawn(function() ran = true end)
    assert.equal("cancelled", t:join())
    assert.is_false(ran)
  end)

  it("can be joined, counted and listed", function()
    local scope = task.new_scope("jobs")
    for i = 1, 3 do
      scope:start({ name = "job " .. i }, function() task.sleep(i) end)
    end
    assert.equal(3, scope:count())
    local names = {}
    for t in scope:tasks() do
      names[#names + 1] = t.name
    end
    table.sort(names)
    assert.same({ "job 1", "job 2", "job 3" }, names)
    scope:join()
    assert.equal(0, scope:count())
  end)

  it("that is root outlives the task that spawned into it", function()
    local outliving
    local t = task.spawn(function()
      outliving = task.root:spawn(function() task.sleep(5) return "later" end)
    end)
    t:await()
    assert.is_nil(outliving.outcome)
    assert.equal("later", outliving:await())
  end)

  it("can be told to take the spawns of a task", function()
    local scope = task.new_scope("background")
    local t = task.start({ children = scope }, function()
      task.spawn(function() task.sleep(5) end)
    end)
    t:await()
    assert.equal(1, scope:count())
    scope:join()
  end)

  it("with a parent is cancelled with it", function()
    local parent = task.new_scope("parent")
    local below = task.new_scope("below", parent)
    local t = below:spawn(function() task.sleep(100) end)
    task.sleep(1)
    parent:cancel("closing")
    assert.equal("cancelled", t:join())
    assert.equal("cancelled", task.new_scope("later", parent):spawn(function() end):join())
  end)
end)
