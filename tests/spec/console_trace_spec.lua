-- `trace` shows calls of a function without changing what they do, at a limit that has to be given,
-- and leaves the function exactly as it was.
local lifecycle = require "support.lifecycle"
local steering = require "support.steering"

local life, steer, tide, app
local LIMIT = { max = 20, per = "1s" }

local function find(text)
  return steer:told():find(text, 1, true) ~= nil
end

describe("trace of a function", function()
  before_each(function()
    life = lifecycle.new(function(library, world) tide, world.alive = library, true end)
    steer = steering.new(life)
    app = { db = { kind = "sql" } }
    function app.add(a, b) return a + b end
    function app.db.query(text) return { text = text }, nil, "third" end
    package.loaded["test.app"] = app
  end)
  after_each(function()
    package.loaded["test.app"] = nil
    steer:finish()
  end)

  it("shows arguments, results, the time and who called", function()
    steer:run("trace", "test.app.db.query", LIMIT)
    life:task(function()
      local a, b, c = app.db.query "select 1"
      assert.same({ { text = "select 1" }, nil, "third" }, { a, b, c })
    end)
    local message = steer.sent[1]
    assert.same({ "event", "trace", "test.app.db.query" },
      { message.type, message.event, message.target })
    assert.matches("^test%.app%.db%.query%(\"select 1\"%) = { text = \"select 1\" }, nil, "
      .. "\"third\"  %d+%.?%d* [um]s  %(task task %d+%)$", message.text)
  end)

  it("takes a table and a key, and finds what is inherited where it stands", function()
    local class = { name = function() return "class" end }
    local object = setmetatable({}, { __index = class })
    local original = class.name
    steer:run("trace", object, "name", LIMIT)
    assert.equal("class", object.name())
    assert.is_nil(rawget(object, "name"))
    assert.equal(1, #steer.sent)
    steer:run("trace", object, "name", false)
    assert.equal(original, class.name)
  end)

  it("passes everything on: nils, many values, none", function()
    function app.same(...) return ... end
    steer:run("trace", "test.app.same", LIMIT)
    assert.same({ n = 4, nil, 1, nil, nil }, table.pack(app.same(nil, 1, nil, nil)))
    assert.equal(0, select("#", app.same()))
    assert.equal(300, select("#", app.same(table.unpack({}, 1, 300))))
    assert.is_true(find "same() returned nothing")
    assert.is_true(find "… 292 more")
  end)

  it("lets a call await, and measures it", function()
    function app.slow() tide.sleep(2) return "done" end
    steer:run("trace", "test.app.slow", LIMIT)
    local t = life:task(function() return app.slow() end)
    assert.same({}, steer.sent)
    life:advance(3)
    assert.equal("done", t.value)
    assert.is_true(find "app.slow() = \"done\"")
  end)

  it("passes errors on: the value as it is, the traceback with the place", function()
    local value = setmetatable({}, { __tostring = function() return "a value" end })
    function app.fail(how)
      if how == "value" then error(value) end
      error "broken"
    end
    local _, plain = xpcall(app.fail, debug.traceback)
    steer:run("trace", "test.app.fail", LIMIT)
    local _, traced = xpcall(app.fail, debug.traceback)
    assert.equal(plain:match "^[^\n]+", traced:match "^[^\n]+")
    local frame = plain:match "\n%s*([^\n]+console_trace_spec.lua:%d+:)"
    assert.is_truthy(traced:find(frame, 1, true))
    local ok, err = pcall(app.fail, "value")
    assert.is_false(ok)
    assert.is_true(rawequal(value, err))
    assert.is_true(find "raised a value")
  end)

  it("stands for the caller in an error of level 2, as long as the call is shown", function()
    function app.fail() error("a bad argument", 2) end
    local function call() return select(2, pcall(function() app.fail() end)) end
    local plain = call()
    assert.matches("console_trace_spec.lua:%d+: a bad argument$", plain)
    steer:run("trace", "test.app.fail", { max = 1 })
    assert.matches("trace/call.lua:%d+: a bad argument$", call())
    assert.equal(plain, call()) -- beyond the limit
  end)

  it("tells of a call that is cancelled", function()
    function app.slow() tide.sleep(20) end
    steer:run("trace", "test.app.slow", LIMIT)
    local t = life:task(app.slow)
    t:cancel "enough"
    life:turn()
    assert.equal("cancelled", t.outcome)
    assert.is_true(find "raised cancelled: enough")
  end)

  it("shows no more than the limit, and counts the rest", function()
    steer:run("trace", "test.app.add", { max = 3, per = "1s" })
    for i = 1, 315 do assert.equal(i + 1, app.add(i, 1)) end
    assert.equal(3, #steer.sent)
    life:advance(1.1)
    assert.equal("… 312 more in this second", steer.sent[4].text)
    life:advance(5)
    assert.equal(4, #steer.sent)
    app.add(1, 1)
    assert.equal(5, #steer.sent)
    for _ = 1, 10 do app.add(1, 1) end
    steer:run("trace", "test.app.add", false)
    assert.equal("… 8 more in this second", steer.sent[#steer.sent].text)
  end)

  it("restores exactly what was there, at its end and at that of its session", function()
    local add, query = app.add, app.db.query
    steer:run("trace", "test.app.add", LIMIT)
    steer:run("trace", "test.app.db.query", LIMIT)
    assert.are_not.equal(add, app.add)
    steer:run("trace", "test.app.add", false)
    assert.equal(add, app.add)
    steer.session:close()
    assert.equal(query, app.db.query)
    local timers = life.core.clock.pending()
    app.add(1, 2)
    assert.equal(timers, life.core.clock.pending())
  end)

  it("leaves a function alone that somebody has put there meanwhile", function()
    local add = app.add
    steer:run("trace", "test.app.add", LIMIT)
    local ours = app.add
    local theirs = function(...) return ours(...) * 10 end
    app.add = theirs
    steer.session:close()
    assert.equal(theirs, app.add)
    assert.equal(30, app.add(1, 2)) -- ours only passes on
    assert.equal(0, #steer.sent)
    app.add = add
  end)

  it("may be there twice, and ends in any order", function()
    local other = steering.new(life)
    local add = app.add
    for _, first in ipairs { steer, other } do
      local last = first == steer and other or steer
      steer:run("trace", "test.app.add", LIMIT)
      other:run("trace", "test.app.add", LIMIT)
      assert.equal(3, app.add(1, 2))
      first:run("trace", "test.app.add", false)
      assert.equal(3, app.add(1, 2))
      last:run("trace", "test.app.add", false)
      assert.equal(add, app.add)
    end
    assert.equal(3, #steer.sent)
    assert.equal(3, #other.sent)
  end)

  it("begins anew with another limit", function()
    steer:run("trace", "test.app.add", { max = 1 })
    steer:run("trace", "test.app.add", { max = 5 })
    for _ = 1, 5 do app.add(1, 2) end
    assert.equal(5, #steer.sent)
    assert.matches("test%.app%.add +at most 5 in 1s", require("moontide.console.printer")
      .text(steer:run "trace"))
  end)

  it("tells names that are no text as text", function()
    steer:run("trace", "test.app.add", LIMIT)
    tide.task.start({ name = "\27[2J\xff", scope = tide.root }, function() app.add(1, 2) end)
    life:turn()
    assert.matches("%(task %?%[2J\u{FFFD}%)$", steer.sent[1].text)
  end)

  it("may be of what is used to tell it", function()
    steer:run("trace", "string.format", LIMIT)
    steer:run("trace", "moontide.console.printer.text", LIMIT)
    assert.equal("1", ("%d"):format(1))
    assert.is_true(find "string.format(\"%d\", 1) = \"1\"")
    assert.is_true(#steer.sent < 20) -- telling of a call is none
  end)

  it("cannot be disturbed by a value whose __tostring fails or spins", function()
    local bad = setmetatable({}, { __tostring = function() error "no" end })
    steer:run("trace", "test.app.add", LIMIT)
    function app.same(x) return x end
    steer:run("trace", "test.app.same", LIMIT)
    assert.equal(bad, app.same(bad))
    assert.equal(1, #steer.sent)
  end)

  it("ends when it cannot tell, and the call goes on", function()
    local add = app.add
    steer:run("trace", "test.app.add", LIMIT)
    steer.session.send = function() error "no way" end
    assert.equal(3, app.add(1, 2))
    assert.equal(add, app.add)
    assert.equal(1, #life:logged { level = "warn", message = "a trace has ended by an error" })
  end)

  it("is audited", function()
    steer:run("trace", "test.app.add", LIMIT)
    assert.same({ { action = "trace", text = "test.app.add" } }, steer.audited)
  end)

  it("refuses what has no limit, and limits that are none", function()
    for _, case in ipairs {
      { nil, "a limit is wanted.*trace%(\"app%.query\", { max = 20" }, { 20, "a limit is wanted" },
      { {}, "max, how many are shown, is a whole number from 1 to 1000" },
      { { max = 0 }, "whole number from 1" }, { { max = 1001 }, "whole number from 1" },
      { { max = 2.5 }, "whole number from 1" }, { { max = 1, per = "5" }, "has no unit" },
      { { max = 1, per = "1ms" }, "per is a time from 100ms to 1h" },
      { { max = 1, pre = "1s" }, "unknown option \"pre\"; did you mean \"per\"" },
    } do
      assert.matches(case[2], steer:refused("trace", "test.app.add", case[1]))
    end
    assert.same({}, steer.audited)
  end)

  it("refuses what is no function, with the nearest name", function()
    assert.matches("unknown function of test%.app \"ad\"; did you mean \"add\"",
      steer:refused("trace", "test.app.ad", LIMIT))
    assert.matches("test%.app%.db is a table, not a function",
      steer:refused("trace", "test.app.db", LIMIT))
    assert.matches("nowhere%.at%.all leads to no loaded module or global",
      steer:refused("trace", "nowhere.at.all", LIMIT))
    assert.matches("not a number", steer:refused("trace", 7, LIMIT))
    assert.matches("a table and a key", steer:refused("trace", app, LIMIT))
    assert.matches("unknown trace \"x\"; there are none", steer:refused("trace", "x", false))
  end)

  it("refuses more than sixteen at a time", function()
    for i = 1, 17 do app["f" .. i] = function() end end
    for i = 1, 16 do steer:run("trace", "test.app.f" .. i, LIMIT) end
    assert.matches("16 at a time are enough", steer:refused("trace", "test.app.f17", LIMIT))
  end)
end)

describe("trace of the lifecycle", function()
  after_each(function() steer:finish() end)

  local function new(main)
    life = lifecycle.new(function(library, world)
      tide, world.alive = library, true
      main()
    end)
    steer = steering.new(life)
  end

  it("tells of a phase and its tasks", function()
    new(function()
      tide.shutdown:task("service-stop", "flush", function() tide.sleep(1) end)
      tide.shutdown:task("cluster-leave", "leave", function() end)
    end)
    steer:run("trace", "service-stop", LIMIT)
    life:signal "SIGTERM"
    life:advance(2)
    assert.equal(table.concat({
      "shutdown phase service-stop began", "task service-stop/flush began",
      "task service-stop/flush ok  1000 ms", "shutdown phase service-stop ok  1000 ms",
    }, "\n"), steer:told())
  end)

  it("tells of one task, whatever it comes to", function()
    new(function()
      tide.shutdown:task("service-stop", "flush", function() error "no" end)
      tide.shutdown:task("service-stop", "other", function() end)
    end)
    steer:run("trace", "service-stop/flush", LIMIT)
    life:signal "SIGTERM"
    assert.matches("^task service%-stop/flush began\ntask service%-stop/flush failed  %d+ ms$",
      steer:told())
  end)

  it("tells of all of it, with the moves of the state", function()
    new(function() tide.shutdown:task("service-stop", "flush", function() end) end)
    steer:run("trace", "lifecycle", LIMIT)
    life:signal "SIGTERM"
    assert.matches("^state ready %-> draining: process%-terminate %(SIGTERM from pid 4242%)\n",
      steer:told())
    assert.matches("task service%-stop/flush ok", steer:told())
    assert.matches("\nstate draining %-> stopped", steer:told())
  end)

  it("tells of each result of a check", function()
    local up = true
    new(function() tide.check("db", { every = 1 }, function() return up, "no route" end) end)
    steer:run("trace", "db", LIMIT)
    life:advance(1)
    up = false
    life:advance(1)
    assert.equal("check db ok  0 ms\ncheck db no route  0 ms", steer:told())
    steer:run("trace", "db", false)
    life:advance(5)
    assert.equal(2, #steer.sent)
    assert.is_false(require("moontide.pipeline.record").observer)
  end)

  it("tells of other tasks as they end, by name or by place, or of all", function()
    new(function() end)
    local function run()
      tide.task.start({ name = "mill", scope = tide.root }, function() tide.sleep(1) end)
      tide.task.start({ name = "pump", scope = tide.root }, function() tide.sleep(9) end):cancel()
      life:advance(2)
    end
    steer:run("trace", "task mill", LIMIT)
    run()
    assert.matches("^task mill %(.*console_trace_spec.lua:%d+%) ok  1000 ms$", steer:told())
    steer:run("trace", "task mill", false)
    steer:run("trace", "tasks", LIMIT)
    run()
    assert.equal(3, #steer.sent)
    assert.matches("task pump %(.*%) cancelled  0 ms", steer:told())
    steer:run("trace", "tasks", false)
    steer:run("trace", "task console_trace_spec.lua", LIMIT)
    run()
    assert.equal(5, #steer.sent)
  end)

  it("refuses a name that is nothing, with the nearest", function()
    new(function() end)
    assert.matches("unknown phase, task or check \"service%-stp\"; did you mean \"service%-stop\"",
      steer:refused("trace", "service-stp", LIMIT))
  end)
end)
