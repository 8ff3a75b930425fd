-- A job: queued, run, kept, and what ends it before its time.
local async = require "support.async"
local it = async.virtual()
local exchange = require "moontide.http.exchange"
local rooms = require "support.job_room"
local task = require "moontide.task"

local ask, state = rooms.ask, rooms.state

local function sleeper(seconds)
  return function() task.sleep(seconds or 1) return "done" end
end

describe("jobs", function()
  it("go from QUEUED to READY with what the handler returned", function()
    local room = rooms.new(function(job)
      task.sleep(1)
      return 201, { id = job.id, key = job.key, body = job.request.body }, { ["X-A"] = 1 }
    end, { parallel = 1 })
    local first = ask(room, "a")
    local second, _, is_new = ask(room, "b")
    assert.is_true(is_new)
    assert.equal("RUNNING", (state(room, first.id)))
    assert.equal("QUEUED", (state(room, second.id)))
    task.sleep(1.01)
    local now, job = state(room, first.id)
    assert.equal("READY", now)
    assert.equal("RUNNING", (state(room, second.id)))
    assert.equal(201, job.result.status)
    assert.equal(('{"body":"","id":"%s","key":"a"}'):format(first.id), job.result.body)
    assert.same({ ["X-A"] = "1", ["Content-Type"] = "application/json" }, job.result.headers)
    task.sleep(1.01)
    assert.equal("READY", (state(room, second.id)))
  end)

  it("are one for each key, and a key is free again after its time", function()
    local runs = 0
    local room = rooms.new(function() runs = runs + 1 task.sleep(1) return "x" end)
    local first = ask(room, "k")
    local again, _, is_new = ask(room, "k")
    assert.is_falsy(is_new)
    assert.equal(first.id, again.id)
    task.sleep(1.01)
    assert.equal(first.id, ask(room, "k").id)
    task.sleep(59)
    assert.equal(first.id, ask(room, "k").id)
    task.sleep(1.1)
    assert.equal(nil, (state(room, first.id)))
    assert.are_not.equal(first.id, ask(room, "k").id)
    task.sleep(1.01)
    assert.equal(2, runs)
  end)

  it("that run longer than the time to live are not forgotten", function()
    local room = rooms.new(sleeper(300), { ttl = 10 })
    local job = ask(room, "k")
    task.sleep(299)
    assert.equal(job.id, ask(room, "k").id)
    task.sleep(1.1)
    assert.equal("READY", (state(room, job.id)))
  end)

  it("beyond the limit are refused, known ones are found", function()
    local room = rooms.new(sleeper(), { limit = 2, parallel = 1 })
    local first = ask(room, "a")
    ask(room, "b")
    local job, why = ask(room, "c")
    assert.is_nil(job)
    assert.is_true(why.busy)
    assert.equal(first.id, ask(room, "a").id)
    job, why = ask(room, nil)
    assert.is_nil(job)
    assert.is_true(why.busy)
    task.sleep(1.01)
    assert.is_not_nil(ask(room, "c"))
    task.sleep(2.1)
  end)

  it("that fail say so, and no more", function()
    local room = rooms.new(function(job)
      if job.key == "raise" then error("secret") end
      if job.key == "http" then exchange.raise(422, "no such table") end
      if job.key == "bad" then return 200, print end
      if job.key == "header" then return 200, "x", { ["X-A"] = "a\r\nb" } end
      if job.key == "table" then return { [1] = "a", x = "b" } end
      task.sleep(100)
    end, { timeout = 5 })
    local ids = {}
    for _, key in ipairs { "raise", "http", "bad", "header", "table", "late" } do
      ids[key] = ask(room, key).id
    end
    task.sleep(6)
    local function failure(key)
      local now, job = state(room, ids[key])
      assert.equal("FAILED", now)
      assert.is_nil(job.result)
      return job.failure
    end
    for _, key in ipairs { "raise", "bad", "header", "table" } do
      assert.same({ reason = "failed", error = "the job failed" }, failure(key))
    end
    assert.same({ reason = "failed", error = "no such table", status = 422 }, failure "http")
    assert.same({ reason = "timed out", error = "the job timed out" }, failure "late")
  end)

  it("can be ended while they wait and while they run", function()
    local cleaned, begun = 0, 0
    local room = rooms.new(function()
      begun = begun + 1
      local guard <close> = setmetatable({}, { __close = function() cleaned = cleaned + 1 end })
      task.sleep(100)
      return guard
    end, { parallel = 1 })
    local running, waiting = ask(room, "a"), ask(room, "b")
    room:stop(room.live[waiting.id], "cancelled")
    assert.equal("FAILED", (state(room, waiting.id)))
    task.sleep(0.1)
    room:stop(room.live[running.id], "cancelled")
    room:stop(room.live[running.id], "cancelled") -- again harmless
    task.sleep(0.1)
    local now, job = state(room, running.id)
    assert.equal("FAILED", now)
    assert.same({ reason = "cancelled", error = "cancelled" }, job.failure)
    assert.equal(1, cleaned)
    assert.equal(1, begun)
    assert.equal(0, room.count)
  end)

  it("are ended with what their handler has left running", function()
    local ended
    local room = rooms.new(function()
      task.spawn(function()
        local guard <close> = setmetatable({}, { __close = function() ended = true end })
        task.sleep(1000)
        return guard
      end)
      return "result"
    end)
    local job = ask(room, "a")
    task.sleep(0.1)
    assert.equal("RUNNING", (state(room, job.id)))
    room:stop(room.live[job.id], "cancelled")
    task.sleep(0.1)
    local now, seen = state(room, job.id)
    assert.is_true(ended)
    assert.equal("FAILED", now)
    assert.equal("cancelled", seen.failure.reason)
  end)

  it("that were ended take no place in the queue", function()
    local room = rooms.new(sleeper(10), { parallel = 1, limit = 5 })
    ask(room, "runs")
    for i = 1, 100 do
      local job = ask(room, "k" .. i)
      room:stop(room.live[job.id], "cancelled")
    end
    assert.equal(0, #room.queue)
    assert.equal(1, room.count)
    local last = ask(room, "last")
    task.sleep(10.1)
    assert.equal("RUNNING", (state(room, last.id)))
    task.sleep(10.1)
  end)

  it("tell how far they are", function()
    local room = rooms.new(function(job)
      for i = 1, 3 do
        job:progress(i / 3, "row " .. i)
        task.sleep(1)
      end
      assert.has_error(function() job:progress("half") end)
      assert.has_error(function() job:progress(1, {}) end)
    end)
    local job = ask(room, "a")
    task.sleep(1.5)
    local _, now = state(room, job.id)
    assert.same({ n = 2 / 3, text = "row 2" }, now.progress)
    task.sleep(2)
    _, now = state(room, job.id)
    assert.equal("READY", now.state)
    assert.equal("row 3", now.progress.text)
    assert.equal(204, now.result.status)
  end)

  it("are found only where they were asked for", function()
    local room = rooms.new(sleeper())
    local job = ask(room, "a")
    assert.is_nil((room:get(job.id, "/y")))
    assert.is_true(select(2, room:get(job.id, "/y")).gone)
    assert.is_true(select(2, room:get("0123", "/x")).gone)
    local other = rooms.new(sleeper(), { store = room.store, scope = "api POST /xy" })
    assert.is_nil((other:get(job.id, "/x")))
    task.sleep(1.1)
  end)

  it("refuse new ones from when the shutdown waits, and end when its time is over", function()
    local room = rooms.new(sleeper(10), { parallel = 1 })
    local done, waits = ask(room, "a"), ask(room, "b")
    room.closed = true
    local job, why = ask(room, "c")
    assert.is_nil(job)
    assert.is_true(why.draining)
    assert.equal(done.id, ask(room, "a").id)
    task.sleep(10.5) -- the first is done, the second runs
    room:interrupt()
    room.pending:wait()
    assert.equal("READY", (state(room, done.id)))
    local now, ended = state(room, waits.id)
    assert.equal("FAILED", now)
    assert.equal("interrupted by shutdown", ended.failure.error)
  end)
end)
