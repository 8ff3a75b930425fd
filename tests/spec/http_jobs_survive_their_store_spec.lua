-- A store that fails loses no job and lets none run twice.
local async = require "support.async"
local it = async.virtual()
local flaky = require "support.flaky_store"
local rooms = require "support.job_room"
local store_room = require "moontide.http.store"
local task = require "moontide.task"

-- The faults are many, and each is said.
async.core.log.set_file("/dev/null")

local ask, state = rooms.ask, rooms.state

-- A room over a store with faults, and how often its handler ran for each key.
local function new_room(fault, more)
  local runs = {}
  local store = flaky.new(store_room.memory())
  store.fault = fault
  local opts = { store = store }
  for name, value in pairs(more or {}) do opts[name] = value end
  local room = rooms.new(function(job)
    runs[job.key] = (runs[job.key] or 0) + 1
    task.sleep(1)
    return "done"
  end, opts)
  return room, runs, store
end

local function on(method, how, times)
  return function(called, n) return called == method and n <= (times or math.huge) and how end
end

describe("a store that fails", function()
  for _, how in ipairs { "before", "raise" } do
    it("to take a record begins no job: " .. how, function()
      local room, runs = new_room(on("add", how, 1))
      local job, why = ask(room, "k")
      assert.is_nil(job)
      assert.is_string(why.message)
      assert.equal(0, room.count)
      assert.equal(0, room.pending.n)
      job = ask(room, "k")
      task.sleep(1.1)
      assert.equal("READY", (state(room, job.id)))
      assert.same({ k = 1 }, runs)
    end)
  end

  it("after it took a record lets the next request begin its job, once", function()
    local room, runs = new_room(on("add", "after", 1))
    assert.is_nil((ask(room, "k")))
    task.sleep(5)
    assert.same({}, runs) -- nobody was promised anything
    local ids = {}
    task.scope(function(s)
      for _ = 1, 20 do s:spawn(function() ids[ask(room, "k").id] = true end) end
    end)
    task.sleep(1.1)
    assert.is_nil(next(ids, next(ids)))
    assert.equal("READY", (state(room, (next(ids)))))
    assert.same({ k = 1 }, runs)
  end)

  for _, how in ipairs { "before", "after", "raise" } do
    it("to take a result is asked again until it does: " .. how, function()
      local room, runs, store = new_room(on("finish", how, 5))
      local job = ask(room, "k")
      task.sleep(1.05)
      assert.equal("READY", (state(room, job.id))) -- from memory
      assert.equal(1, room.pending.n)
      assert.equal(job.id, ask(room, "k").id)
      task.sleep(10)
      assert.equal(0, room.pending.n)
      assert.equal("READY", store.inner:get(job.id).state)
      assert.equal("done", store.inner:get(job.id).result.body)
      assert.equal(job.id, ask(room, "k").id)
      assert.same({ k = 1 }, runs)
    end)
  end

  it("to note that a job runs lets the job wait: its record must not say QUEUED", function()
    local room, runs = new_room(on("update", "raise", 3))
    local job = ask(room, "k")
    task.sleep(0.5)
    assert.same({}, runs)
    assert.equal("RUNNING", (state(room, job.id)))
    task.sleep(2)
    assert.equal("READY", (state(room, job.id)))
    assert.same({ k = 1 }, runs)
  end)

  it("to note how far a job is does not touch the job", function()
    local store = flaky.new(store_room.memory())
    store.fault = function(method, n) return method == "update" and n > 1 and "raise" end
    local room = rooms.new(function(job)
      for i = 1, 5 do job:progress(i) task.sleep(2) end
      return "done"
    end, { store = store })
    local job = ask(room, "k")
    task.sleep(5)
    assert.same({ n = 3 }, select(2, state(room, job.id)).progress)
    task.sleep(6)
    assert.equal("READY", (state(room, job.id)))
  end)

  it("to look up is said, not taken for an answer", function()
    local room = new_room(on("get", "before"))
    local job = ask(room, "k")
    assert.equal("RUNNING", (state(room, job.id))) -- known without the store
    task.sleep(1.1)
    local none, why = room:get(job.id, "/x")
    assert.is_nil(none)
    assert.is_nil(why.gone)
    assert.equal("get failed before", why.message)
  end)

  it("because a result is too large keeps that, and the key", function()
    local store = store_room.memory { bytes = 5000 }
    local room = rooms.new(function() return ("x"):rep(6000) end, { store = store })
    local job = ask(room, "k")
    task.sleep(0.1)
    local now, it_is = state(room, job.id)
    assert.equal("FAILED", now)
    assert.equal("too large", it_is.failure.reason)
    assert.equal(job.id, ask(room, "k").id)
    assert.equal(0, room.pending.n)
  end)
end)

-- One key, few keys; a store that is slow, fails, and sometimes did what it says it did not.
local function random_run(seed)
  math.randomseed(seed)
  local store = flaky.new(store_room.memory())
  local quiet = false
  store.delay = function() return math.random() < 0.5 and 0 or math.random() * 0.3 end
  store.fault = function()
    if quiet or math.random() > 0.25 then return nil end
    return ({ "before", "after", "raise" })[math.random(3)]
  end
  local runs, promised = {}, {}
  local room = rooms.new(function(job)
    runs[job.key] = (runs[job.key] or 0) + 1
    task.sleep(math.random() * 2)
    return job.id
  end, { store = store, parallel = math.random(1, 4), limit = math.random(2, 20) })
  task.scope(function(s)
    for _ = 1, 60 do
      s:spawn(function()
        task.sleep(math.random() * 5)
        local key = "k" .. math.random(6)
        local job = ask(room, key)
        if job then
          assert.equal(promised[key] or job.id, job.id)
          promised[key] = job.id
        end
      end)
    end
  end)
  quiet = true
  room.pending:wait()
  for key, id in pairs(promised) do
    local now, job = state(room, id)
    assert.equal("READY", now, ("seed %d, key %s"):format(seed, key))
    assert.equal(id, job.result.body)
  end
  for key, n in pairs(runs) do assert.equal(1, n, ("seed %d, key %s"):format(seed, key)) end
  assert.equal(0, room.count)
  assert.equal(0, room.running)
end

describe("a promise", function()
  it("is kept once, however requests and faults fall", function()
    for seed = 1, 60 do random_run(seed) end
  end)
end)
