--- The task library's side of an interruption: what the core raises, the task ends with. That the
--- core does raise it is the business of the watchdog's own specs.
local async = require "support.async"
local it = async.it
local task = require "moontide.task"

local INTERRUPTED = async.core.coroutine.interrupted

describe("a task that was interrupted", function()
  it("ends so, and its coroutine is not used again", function()
    local co
    local t = task.start({ detached_errors = true }, function()
      co = coroutine.running()
      error(INTERRUPTED)
    end)
    assert.equal("interrupted", t:join())
    assert.equal(INTERRUPTED, t.error)
    local other
    task.spawn(function() other = coroutine.running() end):await()
    assert.not_equal(co, other)
  end)

  it("raises it in whoever awaits it", function()
    local t = task.spawn(function() error(INTERRUPTED) end)
    local ok, err = pcall(t.await, t)
    assert.is_false(ok)
    assert.equal(INTERRUPTED, err)
  end)

  it("is cancelled at its next await if it swallowed the error", function()
    local after
    local t = task.start({ timeout = 0.05, detached_errors = true }, function()
      local from = async.core.clock.now()
      pcall(function()
        while async.core.clock.now() - from < 0.1 do end
      end)
      task.sleep(0)
      after = select(2, pcall(task.sleep, 1))
    end)
    assert.equal("timed_out", t:join())
    assert.equal("timeout", after.kind)
  end)
end)
