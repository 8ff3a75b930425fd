local async = require "support.async"
local it = async.virtual()
local task = require "moontide.task"
local ends = require "moontide.task.ends"

describe("a failure that nobody awaits", function()
  local heard, before

  before_each(function()
    heard, before = {}, ends.uncaught
    task.on_uncaught(function(t) heard[#heard + 1] = t.name end)
  end)
  after_each(function() task.on_uncaught(before) end)

  it("of a root task goes to the uncaught handler at once", function()
    task.root:start({ name = "root task" }, function() error("x") end)
    task.sleep(0.1)
    assert.same({ "root task" }, heard)
  end)

  it("of a child goes there when its owner ends", function()
    local t = task.spawn(function()
      task.start({ name = "child" }, function() error("x") end)
      task.sleep(1)
      assert.same({}, heard)
    end)
    t:await()
    assert.same({ "child" }, heard)
  end)

  it("does not if somebody awaits it, before or after", function()
    local t = task.spawn(function()
      local early = task.spawn(function() task.sleep(1) error("x") end)
      local late = task.spawn(function() error("x") end)
      early:join()
      pcall(late.await, late)
    end)
    t:await()
    assert.same({}, heard)
  end)

  it("does not if the starter said that it looks itself, nor if it was cancelled", function()
    task.root:start({ detached_errors = true }, function() error("x") end)
    local t = task.root:spawn(task.sleep, 10)
    task.sleep(1)
    t:cancel()
    task.sleep(1)
    assert.same({}, heard)
  end)

  it("includes a deadline of its own that passed, but not the owner's", function()
    task.root:start({ name = "late", timeout = 1 }, task.sleep, 10)
    task.sleep(3)
    assert.same({ "late" }, heard)
    heard = {}
    task.root:start({ name = "owner", timeout = 1 }, function()
      task.start({ name = "child" }, task.sleep, 10)
    end)
    task.sleep(3)
    assert.same({ "owner" }, heard)
  end)

  it("in the handler itself does not stop the others", function()
    task.on_uncaught(function(t) heard[#heard + 1] = t.name end)
    local ended
    task.root:start({ name = "a", on_end = function() ended = true end }, function() error("x") end)
    task.sleep(0.1)
    assert.is_true(ended)
  end)
end)

describe("a traceback", function()
  it("shows where a task failed, also through those that awaited it", function()
    local function broken() error("deep") end
    local inner = task.start({ name = "inner" }, function() broken() end)
    local function awaiting() inner:await() end
    local outer = task.start({ name = "outer" }, function() awaiting() end)
    outer:join()
    local text = outer:traceback()
    local a = text:find("broken", 1, true)
    local b = text:find("raised in task inner, awaited by task outer", 1, true)
    local c = text:find("awaiting", b + 40, true)
    assert.is_true(a < b and b < c, text)
    assert.is_nil(text:find("moontide/task/", 1, true), text)
  end)

  it("of a suspended task crosses what it awaits", function()
    local function leaf() task.sleep(1) end
    local inner = task.start({ name = "inner" }, function() leaf() end)
    local function trunk() inner:await() end
    local outer = task.spawn(function() trunk() end)
    task.sleep(0.5)
    local text = outer:traceback()
    local a = text:find("trunk", 1, true)
    local b = text:find("awaiting task inner:", 1, true)
    local c = text:find("leaf", 1, true)
    assert.is_true(a < b and b < c, text)
    outer:await()
  end)

  it("shows the tasks of a scope that is waited for", function()
    local function busy() task.sleep(1) end
    local t = task.spawn(function() task.all { function() busy() end } end)
    task.sleep(0.5)
    assert.truthy(t:traceback():find("busy", 1, true), t:traceback())
    t:await()
  end)
end)
