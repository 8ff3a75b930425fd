local async = require "support.async"
local it = async.virtual()
local task = require "moontide.task"

local function kind_of(fn, ...)
  local ok, err = pcall(fn, ...)
  return not ok and type(err) == "table" and err.kind or err
end

describe("a wait that could never end is refused:", function()
  it("a task for itself", function()
    local t = task.current()
    assert.equal("self_wait", kind_of(t.await, t))
    assert.equal("self_wait", kind_of(t.join, t))
  end)

  it("a task for the one it belongs to, or one further up", function()
    local top = task.current()
    local kinds = {}
    task.spawn(function()
      local parent = task.current()
      task.spawn(function()
        kinds[1] = kind_of(parent.await, parent)
        kinds[2] = kind_of(top.await, top)
      end)
    end):await()
    assert.same({ "self_wait", "self_wait" }, kinds)
  end)

  it("a task for one that awaits it", function()
    local first, second, kind
    first = task.spawn(function() task.sleep(1) kind = kind_of(second.await, second) end)
    second = task.spawn(function() first:await() end)
    second:await()
    assert.equal("self_wait", kind)
  end)

  it("a task for the scope it is in", function()
    local scope, kind = task.new_scope("own"), nil
    scope:spawn(function() kind = kind_of(scope.join, scope) end):await()
    assert.equal("self_wait", kind)
  end)

  it("but not for a sibling", function()
    local first = task.spawn(function() task.sleep(1) return "fine" end)
    assert.equal("fine", task.spawn(function() return first:await() end):await())
  end)
end)
