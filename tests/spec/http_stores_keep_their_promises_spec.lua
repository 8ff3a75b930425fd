-- The stores, memory and SQLite file, keep the same promises.
local async = require "support.async"
local folder = require "support.folder"
local store_room = require "moontide.http.store"
local task = require "moontide.task"

local it = async.it
local serial = 0

local function record(key, more)
  serial = serial + 1
  local r = {
    id = ("id%d"):format(serial), scope = "api POST /x", key = key, fingerprint = "f",
    path = "/x", state = "QUEUED", created = 1,
  }
  for name, value in pairs(more or {}) do r[name] = value end
  return r
end

local RESULT = {
  status = 201, headers = { ["Content-Type"] = "text/plain", Cookie = { "a", "b\255" } },
  body = "bytes\0\255\r\n",
}

local MAKERS = {
  memory = function() return store_room.memory() end,
  sqlite = function() return store_room.sqlite(folder.make() .. "/jobs.db") end,
}

for kind, make in pairs(MAKERS) do
  describe("a store: " .. kind, function()
    local store

    before_each(function()
      store = make()
      store:open()
      store:open() -- again harmless
    end)
    after_each(function()
      async.run(function() store:close() end)
      folder.remove()
    end)

    it("gives the first its place, and others the first's record", function()
      local one = record "k"
      assert.is_true(store:add(one))
      local other = store:add(record "k")
      assert.equal(one.id, other.id)
      assert.equal("QUEUED", other.state)
      assert.is_true(store:add(record("k", { scope = "api POST /y" })))
      assert.is_true(store:add(record(nil)))
      assert.is_true(store:add(record(nil))) -- without a key nothing is the same
      assert.equal(one.id, store:find("api POST /x", "k").id)
      assert.is_false(store:find("api POST /x", "other"))
    end)

    it("gives one of many that ask at once the place", function()
      local added, found = 0, {}
      task.scope(function(s)
        for _ = 1, 50 do
          s:spawn(function()
            local r = store:add(record "same")
            if r == true then added = added + 1 else found[r.id] = true end
          end)
        end
      end)
      assert.equal(1, added)
      assert.is_not_nil(next(found))
      assert.is_nil(next(found, next(found)))
    end)

    it("keeps what is in a record, byte for byte", function()
      local r = record("k", { request = { body = "\0\1\255", n = 1 << 60, headers = { a = "b" } } })
      store:add(r)
      local read = store:get(r.id)
      assert.same({ body = "\0\1\255", n = 1 << 60, headers = { a = "b" } }, read.request)
      local progress = { n = 0.5, text = "half" }
      assert.is_true(store:update(r.id, { state = "RUNNING", progress = progress }))
      read = store:get(r.id)
      assert.equal("RUNNING", read.state)
      assert.same(progress, read.progress)
      assert.is_true(store:finish(r.id, { state = "READY", result = RESULT }, 60))
      read = store:get(r.id)
      assert.equal("READY", read.state)
      assert.same(RESULT, read.result)
      assert.is_nil(read.request)
    end)

    it("knows what is in progress", function()
      local a, b = record "a", record("b", { scope = "api POST /x\31tenant" })
      store:add(a)
      store:add(b)
      store:add(record("c", { scope = "api POST /xy" }))
      local done = record "d"
      store:add(done)
      store:finish(done.id, { state = "READY" }, 60)
      local list = store:unfinished "api POST /x"
      if kind == "memory" then return assert.same({}, list) end -- nothing outlives the process
      assert.equal(2, #list)
      assert.same({ [a.id] = true, [b.id] = true }, { [list[1].id] = true, [list[2].id] = true })
    end)

    it("forgets what is removed, and its key", function()
      local r = record "k"
      store:add(r)
      assert.is_true(store:remove(r.id))
      assert.is_false(store:get(r.id))
      assert.is_false(store:update(r.id, { state = "RUNNING" }))
      assert.is_false(store:finish(r.id, { state = "READY" }, 60))
      assert.is_true(store:remove "never there")
      assert.is_true(store:add(record "k"))
    end)

    it("drops an outcome after its time, never what is in progress", function()
      local r = record "k"
      store:add(r)
      store:add(record "open")
      store:finish(r.id, { state = "READY", result = RESULT }, 0.05)
      assert.equal(r.id, store:find(r.scope, "k").id)
      task.sleep(0.06)
      assert.is_false(store:get(r.id))
      assert.is_false(store:find(r.scope, "k"))
      assert.is_true(store:add(record "k"))
      assert.is_not_false(store:find(r.scope, "open"))
    end)
  end)
end
