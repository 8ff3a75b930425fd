local async = require "support.async"
local it = async.virtual()
local task = require "moontide.task"

describe("a waiter", function()
  it("that was woken early returns at once", function()
    local w = task.waiter("early")
    assert.is_true(w:wake(1, nil, 3))
    assert.same({ 1, nil, 3, n = 3 }, table.pack(w:wait()))
  end)

  it("woken twice keeps the first value and resumes once", function()
    local w, resumed = task.waiter("twice"), 0
    local t = task.spawn(function()
      local value = w:wait()
      resumed = resumed + 1
      task.sleep(1)
      return value
    end)
    task.sleep(0.1)
    assert.is_true(w:wake("first"))
    assert.is_false(w:wake("second"))
    task.sleep(0.1)
    assert.is_false(w:wake("third"))
    assert.equal("first", t:await())
    assert.equal(1, resumed)
  end)

  it("woken after its task was cancelled does nothing", function()
    local w = task.waiter("cancelled")
    local t = task.spawn(function()
      pcall(w.wait, w)
      task.shield(5, task.sleep, 2)
      return "slept"
    end)
    task.sleep(0.1)
    t:cancel()
    w:wake("late")
    task.sleep(1)
    w:wake("later")
    assert.equal("waiting", t.state)
    assert.equal("cancelled", t:join())
  end)

  it("woken in the turn of its cancellation does not raise it away", function()
    local w = task.waiter("both")
    local t = task.spawn(function() return w:wait() end)
    task.sleep(0.1)
    w:wake("value")
    t:cancel()
    assert.equal("value", t:await())
  end)

  it("can fail", function()
    local w = task.waiter("fails")
    w:fail({ code = 7 })
    local ok, err = pcall(w.wait, w)
    assert.same({ false, 7 }, { ok, err.code })
  end)

  it("is shown as what its task waits for", function()
    local w = task.waiter("the answer of a server")
    local t = task.spawn(function() w:wait() end)
    task.sleep(0.1)
    assert.equal("the answer of a server", t.waiting_on)
    w:wake()
    t:await()
  end)

  it("is for one task at a time", function()
    local w = task.waiter("one")
    local t = task.spawn(function() w:wait() end)
    task.sleep(0.1)
    assert.error_matches(function() w:wait() end, "one waiter is for one wait")
    w:wake()
    t:await()
  end)
end)

describe("an event", function()
  it("wakes all that wait, in order, and stays set", function()
    local e, order = task.event("e"), {}
    local tasks = {}
    for i = 1, 5 do
      tasks[i] = task.spawn(function() e:wait() order[#order + 1] = i end)
    end
    task.sleep(0.1)
    assert.is_false(e:is_set())
    assert.is_true(e:set("value"))
    assert.is_false(e:set("other"))
    for i = 1, 5 do
      tasks[i]:await()
    end
    assert.same({ 1, 2, 3, 4, 5 }, order)
    assert.equal("value", e:wait())
    assert.is_true(e:is_set())
  end)

  it("forgets thousands of cancelled waits", function()
    local e = task.event("never")
    for _ = 1, 20 do
      local tasks = {}
      for i = 1, 200 do
        tasks[i] = task.spawn(function() e:wait() end)
      end
      task.sleep(0)
      for i = 1, 200 do
        tasks[i]:cancel()
        tasks[i]:join()
      end
    end
    assert.is_true(e.waiters.n <= 2)
  end)
end)

describe("a channel", function()
  it("hands values over in order, with and without room", function()
    for capacity = 0, 3 do
      local ch, got = task.channel(capacity), {}
      task.spawn(function()
        for i = 1, 10 do
          ch:send(i)
        end
        ch:close()
      end)
      while true do
        local value = ch:receive()
        if value == nil then
          break
        end
        got[#got + 1] = value
      end
      assert.same({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, got)
    end
  end)

  it("makes a sender wait when it is full", function()
    local ch, sent = task.channel(2), 0
    local t = task.spawn(function()
      for i = 1, 4 do
        ch:send(i)
        sent = i
      end
    end)
    task.sleep(1)
    assert.equal(2, sent)
    assert.same({ 1, 2 }, { ch:receive(), ch:receive() })
    task.sleep(1)
    assert.equal(4, sent)
    t:await()
  end)

  it("loses no value to a cancelled receiver and takes none from a cancelled sender", function()
    local ch = task.channel()
    local first = task.spawn(function() return ch:receive() end)
    local second = task.spawn(function() return ch:receive() end)
    task.sleep(1)
    first:cancel()
    ch:send("for the second")
    assert.equal("for the second", second:await())
    local sender = task.spawn(function() ch:send("withdrawn") end)
    task.sleep(1)
    sender:cancel()
    sender:join()
    local receiver = task.spawn(function() return ch:receive() end)
    task.sleep(1)
    assert.equal("waiting", receiver.state)
    ch:close()
    assert.is_nil(receiver:await())
  end)

  it("that is closed gives what is left, then nil, and refuses more", function()
    local ch = task.channel(1)
    ch:send("left")
    local stuck = task.start({ detached_errors = true }, function() ch:send("too much") end)
    task.sleep(1)
    ch:close()
    assert.equal("failed", stuck:join())
    assert.same({ "left", nil }, { ch:receive(), ch:receive() })
    assert.error_matches(function() ch:send(1) end, "closed channel")
    assert.error_matches(function() ch:send(nil) end, "cannot send nil")
    assert.has_error(function() task.channel(-1) end)
  end)
end)
