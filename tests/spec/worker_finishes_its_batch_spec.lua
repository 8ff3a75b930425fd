local lifecycle = require "support.lifecycle"

describe("a worker", function()
  local events, life

  local function app(opts, batch)
    events = {}
    life = lifecycle.new(function(tide)
      tide.worker("outbox", opts, function(ctx)
        events[#events + 1] = "begin"
        batch(tide, ctx)
        events[#events + 1] = "end"
      end)
      tide.shutdown:task("before-actor-system-terminate", "after", function()
        events[#events + 1] = "after"
      end)
    end)
    return life
  end

  it("keeps the process up, and works again and again", function()
    app({ every = "1s" }, function(tide) tide.sleep(0.5) end)
    life:advance(4)
    assert.is_nil(life.code)
    assert.same({ "begin", "end", "begin", "end", "begin", "end" }, events)
  end)

  it("finishes the batch in hand at shutdown and starts no other", function()
    app({ every = "1s", drain = "10s" }, function(tide) tide.sleep(4) end)
    life:advance(1)
    life:signal "SIGTERM"
    life:advance(2)
    assert.same({ "begin" }, events)
    life:advance(10)
    assert.same({ "begin", "end", "after" }, events)
    assert.equal(0, life.code)
    assert.equal("ok", life.tide.shutdown.tasks["service-stop"].by_name["worker:outbox"].outcome)
  end)

  it("does not wait for its period to be over", function()
    app({ every = "60s" }, function() end)
    life:advance(1)
    life:signal "SIGTERM"
    life:advance(0.1)
    assert.equal(0, life.code)
  end)

  it("is cancelled when its drain is over, and the pipeline goes on", function()
    app({ every = "1s", drain = "2s" }, function(tide) tide.sleep(60) end)
    life:advance(1)
    life:signal "SIGTERM"
    life:advance(5)
    assert.same({ "begin", "after" }, events)
    local entry = life.tide.shutdown.tasks["service-stop"].by_name["worker:outbox"]
    assert.equal("failed", entry.outcome)
  end)

  it("that is cancelled has cleaned up before the next phase begins, also when the total cuts it",
    function()
      app({ every = "1s", drain = "30s" }, function(tide)
        pcall(tide.sleep, 60)
        tide.shield("500ms", function() tide.sleep(0.4) end)
        events[#events + 1] = "cleaned"
        tide.sleep(0)
      end)
      life.tide.shutdown:set_phase_timeout("service-stop", "3s")
      life:advance(1)
      life:signal "SIGTERM"
      life:advance(6)
      assert.same({ "begin", "cleaned", "after" }, events)
      local record = life:logged({ message = "broken off after 3s" })[1]
      assert.matches("the timeout of phase service%-stop", record.message)
      assert.matches("worker_finishes_its_batch_spec", record.fields.traceback)
    end)

  it("is not started any more once the workers have stopped", function()
    local worker, message
    app({ every = "1s" }, function() end)
    life.tide.shutdown:on("late", function()
      worker, message = life.tide.worker("late", function() events[#events + 1] = "late" end)
      life.tide.sleep(1)
    end)
    life:signal "SIGTERM"
    life:advance(3)
    assert.is_nil(worker)
    assert.matches("service%-stop", message)
    assert.not_matches("late", table.concat(events, " "))
    assert.equal(0, life.code)
  end)

  it("goes on after a batch that raised, and beats only for one that did not", function()
    local n = 0
    app({ every = "1s", stale_after = "5s" }, function()
      n = n + 1
      if n >= 2 then error("bad batch", 0) end
    end)
    life:advance(3.5)
    assert.equal(4, n)
    assert.equal(3, #life:logged { level = "error", message = "bad batch" })
    life:advance(10)
    assert.equal(1, #life:logged { message = "^worker.stale$" })
    assert.is_nil(life.code)
  end)

  it("lets its batch see that the end has come", function()
    local seen
    app({ every = "1s", drain = "10s" }, function(tide, ctx)
      while not ctx:stopping() do tide.sleep(0.5) end
      seen = true
    end)
    life:advance(3)
    life:signal "SIGTERM"
    life:advance(1)
    assert.is_true(seen)
    assert.equal(0, life.code)
  end)
end)
