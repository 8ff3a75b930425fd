-- Jobs in a file are the next process's when theirs is gone. Two rooms with a store each are two
-- processes, as far as the file can tell.
local async = require "support.async"
local folder = require "support.folder"
local rooms = require "support.job_room"
local store_room = require "moontide.http.store"
local task = require "moontide.task"

local it, ask, state = async.it, rooms.ask, rooms.state

describe("jobs in a file", function()
  local path, runs

  before_each(function()
    path, runs = folder.make() .. "/jobs.db", {}
  end)
  after_each(folder.remove)

  local function process(name, more)
    local opts = { store = store_room.sqlite(path) }
    opts.store:open()
    for key, value in pairs(more or {}) do opts[key] = value end
    return rooms.new(function(job)
      runs[#runs + 1] = name .. ":" .. job.key .. (job.resumed and ":again" or "")
      task.sleep(0.2)
      return job.request.method
    end, opts)
  end

  -- What is left of a process that was killed: its records, and no lock.
  local function kill(room)
    room.store.claim:release()
    room.parallel = 0
    for _, method in ipairs { "update", "finish", "release" } do
      room.store[method] = function() return true end
    end
    for _, entry in pairs(room.live) do
      if entry.task then entry.task:cancel() else room:stop(entry, "killed") end
    end
    room.pending:wait()
  end

  it("are seen by another process while theirs lives, and not touched", function()
    local one, two = process "one", process "two"
    local job = ask(one, "k")
    task.sleep(0.05)
    assert.equal(job.id, ask(two, "k").id)
    assert.equal("RUNNING", (state(two, job.id)))
    two:recover_all()
    assert.equal("RUNNING", (state(two, job.id)))
    assert.is_nil(select(2, state(two, job.id)).live)
    one.pending:wait()
    local now, seen = state(two, job.id)
    assert.equal("READY", now)
    assert.equal("POST", seen.result.body)
    assert.same({ "one:k" }, runs)
    one.store:close()
    two.store:close()
  end)

  for resume, wanted in pairs { [true] = "READY", [false] = "FAILED" } do
    it(("that had begun in a killed process are %s, resume = %s"):format(wanted, resume), function()
      local one, two = process "one", process("two", { resume = resume })
      local job = ask(one, "k")
      repeat task.sleep(0.01) until #runs == 1
      kill(one)
      two:recover_all()
      two.pending:wait()
      local now, seen = state(two, job.id)
      assert.equal(wanted, now)
      if resume then
        assert.same({ "one:k", "two:k:again" }, runs)
      else
        assert.equal("interrupted: its process ended", seen.failure.error)
        assert.same({ "one:k" }, runs)
      end
      assert.equal(job.id, ask(two, "k").id)
      two.store:close()
    end)
  end

  it("that had not begun are run, resumed or not; by a poll as well", function()
    local one, two = process("one", { parallel = 1 }), process "two"
    ask(one, "a")
    local waiting = ask(one, "b")
    repeat task.sleep(0.01) until #runs == 1
    kill(one)
    assert.equal("RUNNING", (state(two, waiting.id))) -- who asks sets it going
    two.pending:wait()
    assert.equal("READY", (state(two, waiting.id)))
    assert.same({ "one:a", "two:b" }, runs)
    two.store:close()
  end)

  it("that a shutdown ended are left to the next process when they may be run", function()
    local one = process("one", { parallel = 1 })
    local begun, waiting = ask(one, "a"), ask(one, "b")
    repeat task.sleep(0.01) until #runs == 1
    one.closed = true
    one:interrupt()
    one.pending:wait()
    one.store:close()
    one.store.claim:release()
    local two = process "two"
    two:recover_all()
    two.pending:wait()
    local now, seen = state(two, begun.id)
    assert.equal("FAILED", now)
    assert.equal("interrupted by shutdown", seen.failure.error)
    assert.equal("READY", (state(two, waiting.id)))
    assert.same({ "one:a", "two:b" }, runs)
    two.store:close()
  end)

  it("are taken over by one of many processes that find them", function()
    local one = process("one", { parallel = 1 })
    for i = 1, 10 do ask(one, "k" .. i) end
    repeat task.sleep(0.01) until #runs == 1
    kill(one)
    local others = {}
    for i = 1, 4 do others[i] = process("p" .. i, { resume = true }) end
    task.scope(function(s)
      for _, room in ipairs(others) do s:spawn(function() room:recover_all() end) end
    end)
    for _, room in ipairs(others) do room.pending:wait() end
    local times = {}
    for _, run in ipairs(runs) do
      local key = run:match "^p%d:(k%d+)"
      if key then times[key] = (times[key] or 0) + 1 end
    end
    for i = 1, 10 do assert.equal(1, times["k" .. i]) end
    for _, room in ipairs(others) do room.store:close() end
  end)

  it("with one key are one, whichever process is asked", function()
    local one, two = process "one", process "two"
    local ids = {}
    task.scope(function(s)
      for i = 1, 50 do
        s:spawn(function() ids[ask(i % 2 == 0 and one or two, "k").id] = true end)
      end
    end)
    assert.is_nil(next(ids, next(ids)))
    one.pending:wait()
    two.pending:wait()
    assert.equal(1, #runs)
    one.store:close()
    two.store:close()
  end)
end)
