-- The store in memory is bounded and has no timers.
local async = require "support.async"
local it = async.virtual()
local core = require "moontide.core"
local store_room = require "moontide.http.store"
local task = require "moontide.task"

local serial = 0
local function add(store, key, more)
  serial = serial + 1
  local record = {
    id = "id" .. serial, scope = "s", key = key, fingerprint = "f", path = "/", state = "QUEUED",
  }
  for name, value in pairs(more or {}) do record[name] = value end
  local added, err = store:add(record)
  return added, err, record.id
end

describe("the store in memory", function()
  it("takes nothing new when it has its number, and says for how long", function()
    local store = store_room.memory { count = 2 }
    local _, _, first = add(store, "a")
    add(store, "b")
    local added, err = add(store, "c")
    assert.is_nil(added)
    assert.is_true(err.full)
    assert.is_nil(err.retry_after) -- nobody knows when the two are done
    assert.is_table((add(store, "a"))) -- what is known is found all the same
    store:finish(first, { state = "READY" }, 30)
    _, err = add(store, "c")
    assert.near(30, err.retry_after, 0.1)
    task.sleep(30.01)
    assert.is_true((add(store, "c")))
  end)

  it("counts bytes of requests and results", function()
    local store = store_room.memory { bytes = 10000 }
    local added, err = add(store, "a", { request = { body = ("x"):rep(20000) } })
    assert.is_nil(added)
    assert.is_true(err.full)
    local _, _, id = add(store, "a", { request = { body = ("x"):rep(5000) } })
    local kept
    kept, err = store:finish(id, { state = "READY", result = { body = ("x"):rep(10000) } }, 60)
    assert.is_nil(kept)
    assert.is_true(err.final)
    assert.is_true(store:finish(id, { state = "FAILED" }, 60))
    for i = 1, 14 do assert.is_true((add(store, "k" .. i))) end -- its bytes are free
  end)

  it("forgets each in its own time, in order, whatever the lifetimes", function()
    local store = store_room.memory()
    local ends = {}
    math.randomseed(99)
    for i = 1, 300 do
      local _, _, id = add(store, "k" .. i)
      local ttl = ({ 5, 60, 600 })[math.random(3)]
      store:finish(id, { state = "READY" }, ttl)
      ends[id] = core.clock.now() + ttl
      task.sleep(math.random() * 2)
      for known, at in pairs(ends) do
        local there = store:get(known) ~= false
        assert.equal(core.clock.now() < at, there)
        if not there then ends[known] = nil end
      end
    end
    task.sleep(600)
    store:get "any"
    assert.equal(0, store.count)
    assert.equal(0, store.bytes)
    assert.is_nil(next(store.queues))
    assert.is_nil(next(store.by_key))
  end)

  it("has no timer", function()
    local before = core.clock.pending()
    local store = store_room.memory()
    for i = 1, 100 do
      local _, _, id = add(store, "k" .. i)
      store:finish(id, { state = "READY" }, 60)
    end
    assert.equal(before, core.clock.pending())
  end)
end)
