local async = require "support.async"
local it = async.virtual()
local task = require "moontide.task"

--- Two to-be-closed variables around body; returns what ran.
local function outcome_of(opts, body, meddle)
  local ran = {}
  local function closing(name)
    return setmetatable({}, { __close = function() ran[#ran + 1] = name end })
  end
  opts.detached_errors = true
  local t = task.start(opts, function()
    local _ <close> = closing("outer")
    local _ <close> = closing("inner")
    return body()
  end)
  task.sleep(0.5)
  if meddle then
    meddle(t)
  end
  t:join()
  return t.outcome, table.concat(ran, " ")
end

describe("<close> variables of a task run once and in order", function()
  it("when it returns", function()
    assert.same({ "ok", "inner outer" }, { outcome_of({}, function() task.sleep(1) end) })
  end)

  it("when it raises", function()
    assert.same({ "failed", "inner outer" }, { outcome_of({}, function() error("x") end) })
  end)

  it("when it is cancelled", function()
    assert.same({ "cancelled", "inner outer" }, { outcome_of({}, function() task.sleep(9) end,
      function(t) t:cancel() end) })
  end)

  it("when its deadline passes", function()
    assert.same({ "timed_out", "inner outer" },
      { outcome_of({ timeout = 1 }, function() task.sleep(9) end) })
  end)

  it("when it is abandoned", function()
    assert.same({ "abandoned", "inner outer" },
      { outcome_of({ timeout = 1 }, function() task.shield(60, task.sleep, 50) end) })
  end)

  it("when it yields as a coroutine, which it must not", function()
    assert.same({ "failed", "inner outer" },
      { outcome_of({}, function() coroutine.yield("value") end) })
  end)

  it("and may await while the task unwinds, but not while it is closed", function()
    local awaited, refused
    local t = task.start({ timeout = 1, detached_errors = true }, function()
      local _ <close> = setmetatable({}, { __close = function()
        awaited = pcall(task.shield, 1, task.sleep, 0.1)
      end })
      error("x")
    end)
    t:join()
    assert.is_true(awaited)
    local closed = task.start({ timeout = 1, detached_errors = true }, function()
      local _ <close> = setmetatable({}, { __close = function()
        refused = select(2, pcall(task.shield, 1, task.sleep, 0.1))
      end })
      task.shield(60, task.sleep, 50)
    end)
    assert.equal("abandoned", closed:join())
    assert.truthy(tostring(refused):find("cannot await", 1, true))
  end)
end)
