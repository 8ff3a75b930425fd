local async = require "support.async"
local it = async.virtual()
local task = require "moontide.task"
local now = async.core.clock.now

describe("tide.scope", function()
  it("leaves when all its tasks have ended, with the results of its function", function()
    local from, done = now(), 0
    local a, b = task.scope(function(s)
      s:spawn(function() task.sleep(2) done = done + 1 end)
      task.spawn(function() task.sleep(3) done = done + 1 end)
      return 1, 2
    end)
    assert.same({ 1, 2, 2 }, { a, b, done })
    assert.is_true(now() - from >= 3)
  end)

  it("cancels the rest at the first failure and raises that one", function()
    local from, outcomes = now(), {}
    local ok, err = pcall(task.scope, function(s)
      local function record(t) outcomes[t.name] = t.outcome end
      s:start({ name = "fails", on_end = record }, function() task.sleep(1) error("first", 0) end)
      s:start({ name = "also", on_end = record }, function() task.sleep(2) error("second", 0) end)
      task.start({ name = "long", on_end = record }, function() task.sleep(100) end)
      task.sleep(50)
    end)
    assert.same({ false, "first" }, { ok, err })
    assert.same({ fails = "failed", also = "cancelled", long = "cancelled" }, outcomes)
    assert.is_true(now() - from < 2)
  end)

  it("raises the failure of its function and cancels its tasks", function()
    local child
    local ok, err = pcall(task.scope, function(s)
      child = s:spawn(function() task.sleep(100) end)
      task.sleep(1)
      error("own", 0)
    end)
    assert.same({ false, "own", "cancelled" }, { ok, err, child.outcome })
  end)

  it("passes the cancellation of its task on, and waits for the cleanup", function()
    local cleaned = false
    local t = task.spawn(function()
      task.scope(function(s)
        s:spawn(function()
          local _ <close> = setmetatable({}, { __close = function()
            task.shield(1, task.sleep, 0.5)
            cleaned = true
          end })
          task.sleep(100)
        end)
      end)
    end)
    task.sleep(1)
    t:cancel("enough")
    assert.equal("cancelled", t:join())
    assert.is_true(cleaned)
  end)

  it("nests", function()
    local ok, err = pcall(task.scope, function()
      task.scope(function(inner)
        inner:spawn(function() error("deep", 0) end)
      end)
    end)
    assert.same({ false, "deep" }, { ok, err })
  end)
end)

describe("tide.all", function()
  it("returns the result of each under its key", function()
    local from = now()
    local results = task.all {
      function() task.sleep(2) return "one" end,
      named = function() task.sleep(1) return "two" end,
      nothing = function() end,
    }
    assert.same({ "one", named = "two" }, results)
    assert.is_true(now() - from < 2.1)
    assert.same({}, task.all {})
  end)

  it("fails with the first failure and leaves nothing running", function()
    local reached = false
    local ok, err = pcall(task.all, {
      function() task.sleep(1) error("no", 0) end,
      function() task.sleep(2) reached = true end,
    })
    assert.same({ false, "no", false }, { ok, err, reached })
  end)
end)

describe("tide.race", function()
  it("returns what the first to end returned and cancels the others", function()
    local lost = false
    local a, b = task.race {
      function()
        local _ <close> = setmetatable({}, { __close = function() lost = true end })
        task.sleep(10)
      end,
      function() task.sleep(1) return "won", 2 end,
    }
    assert.same({ "won", 2, true }, { a, b, lost })
  end)

  it("raises when the first to end failed", function()
    local ok, err = pcall(task.race, {
      function() task.sleep(1) error("first", 0) end,
      function() task.sleep(2) end,
    })
    assert.same({ false, "first" }, { ok, err })
    assert.has_error(function() task.race {} end)
  end)
end)
