local async = require "support.async"
local it = async.virtual()
local task = require "moontide.task"
local now, pending = async.core.clock.now, async.core.clock.pending

local function near(expected, actual)
  assert.is_true(math.abs(expected - actual) < 0.01, ("%s is not %s"):format(actual, expected))
end

describe("a deadline", function()
  it("is the earlier of the own and the inherited one", function()
    local from = now()
    local t = task.start({ timeout = 10 }, function()
      near(from + 10, task.deadline())
      local shorter = task.start({ timeout = 3 }, function() return task.deadline() end)
      local longer = task.start({ deadline = from + 99 }, function() return task.deadline() end)
      local plain = task.spawn(function()
        return task.spawn(function() return task.deadline() end):await()
      end)
      near(from + 3, shorter:await())
      near(from + 10, longer:await())
      near(from + 10, plain:await())
      assert.is_nil(task.root:spawn(task.deadline):await())
    end)
    t:await()
    assert.is_nil(task.deadline())
  end)

  it("raises at the await point and says whose it was", function()
    local err
    local t = task.start({ timeout = 2, detached_errors = true }, function()
      err = select(2, pcall(task.sleep, 100))
      error(err, 0)
    end)
    local from = now()
    assert.equal("timed_out", t:join())
    near(from + 2, now())
    assert.equal("timeout", err.kind)
    assert.equal("its own timeout", err.limit)
    near(2, err.seconds)
    assert.equal("timed out: its own timeout of 2 s", tostring(err))
    assert.is_true(task.is_cancelled(err))

    local phase = task.start({
      deadline = now() + 1, limit = "phase db", detached_errors = true,
    }, function() task.spawn(task.sleep, 100):await() end)
    phase:join()
    assert.equal("phase db", phase.error.limit)
  end)

  it("holds for the whole tree below", function()
    local from, inner = now(), nil
    local t = task.start({ timeout = 2, detached_errors = true }, function()
      task.spawn(function()
        inner = task.spawn(function() task.sleep(100) end)
      end)
    end)
    assert.equal("timed_out", t:join())
    assert.equal("timed_out", inner.outcome)
    near(from + 2, now())
  end)

  it("is missed by a task that was late but not awaiting when it passed", function()
    local t = task.start({ timeout = 1, detached_errors = true }, function()
      task.sleep(0.9)
      while now() < task.deadline() do
        if not pcall(task.sleep, 0.05) then
          break
        end
      end
      return "late"
    end)
    assert.equal("timed_out", t:join())
  end)

  it("costs at most one clock entry for a suspended task", function()
    local before = pending()
    local gates, tasks = {}, {}
    for i = 1, 100 do
      gates[i] = task.event()
      tasks[i] = task.start({ timeout = 10 + i }, function()
        gates[i]:wait()
        task.sleep(1)
      end)
    end
    task.sleep(0.1)
    assert.equal(100, pending() - before)
    for i = 1, 100 do
      gates[i]:set()
    end
    task.sleep(0.1)
    assert.equal(100, pending() - before)
    for i = 1, 100 do
      tasks[i]:await()
    end
    assert.equal(0, pending() - before)
  end)

  it("costs no clock entry where it is the owner's", function()
    local before = pending()
    local gate = task.event()
    local t = task.start({ timeout = 10 }, function()
      for _ = 1, 50 do
        task.spawn(function() gate:wait() end)
      end
    end)
    task.sleep(1)
    assert.equal(1, pending() - before)
    gate:set()
    t:await()
  end)

  it("of tide.timeout is raised in the caller, which goes on", function()
    local from = now()
    assert.same({ 1, 2 }, { task.timeout(1, function() return 1, 2 end) })
    local ok, err = pcall(task.timeout, "500ms", task.sleep, 100)
    assert.is_false(ok)
    assert.same({ "timeout", "tide.timeout" }, { err.kind, err.limit })
    near(from + 0.5, now())
    task.sleep(1)
    ok, err = pcall(task.timeout, 1, function() error("own", 0) end)
    assert.same({ false, "own" }, { ok, err })
  end)

  it("keeps where the late task was", function()
    local function stuck_here() task.sleep(100) end
    local t = task.start({ timeout = 1, detached_errors = true }, function() stuck_here() end)
    t:join()
    assert.truthy(t:traceback():find("stuck_here", 1, true))
  end)
end)

describe("the grace of a late task", function()
  it("lets shielded cleanup finish", function()
    local cleaned = false
    local t = task.start({ timeout = 1, detached_errors = true }, function()
      local _ <close> = setmetatable({}, { __close = function()
        task.shield("500ms", task.sleep, 0.4)
        cleaned = true
      end })
      task.sleep(100)
    end)
    assert.equal("timed_out", t:join())
    assert.is_true(cleaned)
  end)

  it("ends with the task's being closed and listed as abandoned", function()
    local from, closed = now(), 0
    local t = task.start({ name = "stubborn", timeout = 2, detached_errors = true }, function()
      local _ <close> = setmetatable({}, { __close = function() closed = closed + 1 end })
      task.shield(60, function() task.sleep(50) end)
    end)
    assert.equal("abandoned", t:join())
    near(from + 3, now())
    assert.equal(1, closed)
    assert.equal("timeout", t.error.kind)
    local record = task.abandoned[#task.abandoned]
    assert.equal("stubborn", record.name)
    near(3, record.seconds)
    assert.truthy(record.traceback:find("task_deadline_is_inherited_spec", 1, true))
    assert.truthy(t.left)
  end)

  it("closes what is below before what is above", function()
    local order = {}
    local function closing(name)
      return setmetatable({}, { __close = function() order[#order + 1] = name end })
    end
    local t = task.start({ timeout = 1, detached_errors = true }, function()
      local _ <close> = closing("parent")
      task.scope(function()
        local _ <close> = closing("body")
        task.shield(60, function()
          local _ <close> = closing("shielded")
          task.sleep(50)
        end)
      end)
    end)
    t:join()
    assert.same({ "shielded", "body", "parent" }, order)
    assert.equal("timed_out", t.outcome)
  end)
end)
