-- A store that fails makes no request run twice, and loses no answer that was given.
local async = require "support.async"
local it = async.virtual()
local core = async.core
local exchange = require "moontide.http.exchange"
local flaky = require "support.flaky_store"
local idempotent = require "moontide.http.idempotent"
local store_room = require "moontide.http.store"
local task = require "moontide.task"

core.log.set_file("/dev/null") -- the faults are many, and each is said

local function new(handler, fault, store)
  store = store or flaky.new(store_room.memory())
  store.fault = fault
  local route = { server = { name = "api", own = function() end }, method = "POST", pattern = "/x",
    site = "test:1" }
  local serve = idempotent.new({ store = store, ttl = 60 }):attach(route, handler)
  return function(key, body, more)
    local req = {
      method = "POST", target = "/x", path = "/x", headers = { ["idempotency-key"] = key },
      body = function() return body or "" end, write = function() return true end,
    }
    for name, value in pairs(more or {}) do req[name] = value end
    return serve(req)
  end, store
end

local function on(method, how, times)
  return function(called, n) return called == method and n <= (times or math.huge) and how end
end

describe("a route that runs once for each key", function()
  local runs
  before_each(function() runs = 0 end)

  local function handler()
    runs = runs + 1
    task.sleep(1)
    return 201, "done " .. runs
  end

  for _, how in ipairs { "before", "raise" } do
    it("does not run when the key cannot be recorded: " .. how, function()
      local ask = new(handler, on("add", how, 1))
      local status, _, headers = ask "k"
      assert.equal(503, status)
      assert.equal("1", headers["Retry-After"])
      assert.equal(0, runs)
      assert.equal(201, (ask "k"))
      assert.equal(1, runs)
    end)
  end

  it("runs once for who comes after a record that may not be there, but is", function()
    local ask = new(handler, on("add", "after", 1))
    assert.equal(503, (ask "k"))
    local seen = {}
    task.scope(function(s)
      for _ = 1, 20 do
        s:spawn(function()
          local status = ask "k"
          seen[#seen + 1] = status
        end)
      end
    end)
    table.sort(seen)
    assert.equal(201, seen[1])
    assert.equal(409, seen[2])
    assert.equal(409, seen[20])
    assert.equal(1, runs)
  end)

  for _, how in ipairs { "before", "after", "raise" } do
    it("answers, and keeps the answer later: " .. how, function()
      local ask = new(handler, on("finish", how, 3))
      assert.equal(201, (ask "k"))
      -- Not to be had yet, and not to be run again; unless it was kept, and nobody could tell.
      assert.equal(how == "after" and 201 or 409, (ask "k"))
      task.sleep(5)
      local status, body, headers = ask "k"
      assert.equal(201, status)
      assert.equal("done 1", body)
      assert.equal("true", headers["Idempotency-Replayed"])
      assert.equal(1, runs)
    end)
  end

  it("lets a key go after an error, also when the store does not hear it", function()
    local fail = true
    local ask = new(function()
      runs = runs + 1
      if fail then error("secret") end
      return "done"
    end, on("remove", "before"))
    assert.is_false((pcall(ask, "k")))
    task.sleep(0.1)
    fail = false
    assert.equal("done", select(2, ask "k"))
    assert.equal(2, runs)
  end)

  it("lets a key go after an answer that passes, also when its time is over meanwhile", function()
    local ask, store = new(function()
      runs = runs + 1
      return runs == 1 and 500 or 200, "done " .. runs
    end)
    store.delay = function(method) return method == "remove" and 5 or 0 end
    local late = task.start({ timeout = 1, detached_errors = true }, ask, "k")
    assert.equal("timed_out", late:join())
    assert.equal(409, (ask "k"))
    task.sleep(20)
    assert.equal(200, (ask "k"))
    assert.equal(2, runs)
  end)

  it("keeps what it was told, not what passes", function()
    local answers = {
      ok = { 200, "x" }, none = {}, bad = { 404, "x" }, many = { 429, "x" }, down = { 503, "x" },
    }
    local ask = new(function(req)
      runs = runs + 1
      if req.raise then exchange.raise(req.raise, "raised") end
      return table.unpack(answers[req.headers["idempotency-key"]])
    end)
    local again = { ok = 0, none = 0, bad = 0, many = 1, down = 1 }
    for key, more in pairs(again) do
      runs = 0
      ask(key)
      task.sleep(0.01)
      ask(key)
      assert.equal(1 + more, runs, key)
    end
    for status, more in pairs { [409] = 0, [503] = 1 } do
      runs = 0
      local key = "raised" .. status
      assert.is_false((pcall(ask, key, "", { raise = status })))
      task.sleep(0.01)
      local ok, first = pcall(ask, key, "", { raise = status })
      assert.equal(more == 0, ok)
      if ok then assert.equal(409, first) end
      assert.equal(1 + more, runs)
    end
  end)

  it("does not run again what cannot be given again", function()
    local ask = new(function(req)
      runs = runs + 1
      req:write "a"
    end)
    ask "stream"
    task.sleep(0.01)
    local status, body = ask "stream"
    assert.equal(409, status)
    assert.equal("The answer was not kept", body.title)
    assert.equal(1, runs)
    ask = new(function() runs = runs + 1 return ("x"):rep(9000) end, nil,
      store_room.memory { bytes = 5000 })
    ask "large"
    task.sleep(0.5)
    assert.equal(409, (ask "large"))
    assert.equal(2, runs)
  end)

  it("forgets after the time to live", function()
    local ask = new(handler)
    ask "k"
    task.sleep(59)
    assert.equal("done 1", select(2, ask "k"))
    task.sleep(2)
    assert.equal("done 2", select(2, ask "k"))
  end)

  it("runs once, however requests and faults fall", function()
    for seed = 1, 40 do
      math.randomseed(seed)
      local ran, answers, quiet = {}, {}, false
      local ask, store = new(function(req)
        local key = req.headers["idempotency-key"]
        ran[key] = (ran[key] or 0) + 1
        task.sleep(math.random())
        return 200, key .. ":" .. ran[key]
      end, function()
        if quiet or math.random() > 0.25 then return nil end
        return ({ "before", "after", "raise" })[math.random(3)]
      end)
      store.delay = function() return math.random() < 0.5 and 0 or math.random() * 0.2 end
      local function one()
        local key = "k" .. math.random(5)
        local status, body = ask(key)
        if status == 200 then
          assert.equal(answers[key] or body, body, "seed " .. seed)
          answers[key] = body
        else
          assert.is_true(status == 409 or status == 503)
        end
      end
      task.scope(function(s)
        for _ = 1, 50 do
          s:spawn(function() task.sleep(math.random() * 4) one() end)
        end
      end)
      quiet = true
      task.sleep(30) -- what is to be kept is kept
      for _ = 1, 20 do one() end
      for key, n in pairs(ran) do assert.equal(1, n, ("seed %d, key %s"):format(seed, key)) end
    end
  end)
end)
