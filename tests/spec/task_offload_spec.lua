local async = require "support.async"
local it = async.it
local task = require "moontide.task"

describe("tide.offload", function()
  it("runs a function on another thread and returns its results", function()
    local sum, text, yes, none = task.offload(function(a, b, s)
      return a + b, s:upper(), true, nil
    end, 1, 2, "text")
    assert.same({ 3, "TEXT", true }, { sum, text, yes })
    assert.is_nil(none)
  end)

  it("does not block other tasks", function()
    local turns = 0
    local ticker = task.spawn(function()
      while true do
        task.sleep(0.005)
        turns = turns + 1
      end
    end)
    task.offload(function()
      local from = os.clock()
      while os.clock() - from < 0.1 do end
    end)
    ticker:cancel()
    assert.is_true(turns > 0)
  end)

  it("raises what the function raises", function()
    local ok, err = pcall(task.offload, function() error("in the thread") end)
    assert.is_false(ok)
    assert.truthy(tostring(err):find("in the thread", 1, true))
  end)

  it("refuses what cannot go to another thread", function()
    local outside = 1
    assert.error_matches(function() task.offload(function() return outside end) end, "outside")
    assert.error_matches(function() task.offload(function() end, {}) end, "argument 1 is a table")
    assert.error_matches(function() task.offload(print) end, "written in Lua")
    assert.error_matches(function() task.offload(function() return 1, {} end) end,
      "result 2 is a table")
    assert.error_matches(function() task.offload("print") end, "needs a function")
  end)

  it("leaves a cancelled task at once, whenever the work ends", function()
    local t = task.spawn(function()
      task.offload(function()
        local from = os.clock()
        while os.clock() - from < 0.05 do end
      end)
    end)
    task.sleep(0.01)
    t:cancel()
    assert.equal("cancelled", t:join())
    task.sleep(0.1)
  end)
end)
