-- An evaluation ends at its deadline, which is one for all its slices, and when it is interrupted:
-- whatever it does, unless it is one call of C that does not return.
local async = require "support.async"
local core = require "moontide.core"
local corpus = require "support.corpus"
local evaluations = require "support.evaluations"
local native = require "moontide.core.evaluation"
local task = require "moontide.task"

core.host.watch()

-- The steps take effect with the next look of the hook; the bounds are for a machine that does
-- other things at the same time. What is not stopped runs for ever.
local PROMPT = 2.0
local TURNS = 200

local session

local function start(source, fields)
  local request = { type = "eval", source = source }
  for key, value in pairs(fields or {}) do request[key] = value end
  local id = session:ask(request)
  while not (session:status(id) or session.real.running[id].evaluation) do task.sleep(0) end
  return id
end

-- Waits until it is done, or has had its time: on a machine that does other things at the same time
-- that is not to be measured by a clock alone. In each turn here it has one, too.
local function give_time(id)
  task.sleep(0.05)
  for _ = 1, TURNS do
    if session:status(id) then return end
    task.sleep(0)
  end
end

-- Interrupts, again and again, until it is done; returns how often, and the reply.
local function interrupt(id)
  local times = 0
  while not session:status(id) do
    session:ask { type = "interrupt", of = id }
    times = times + 1
    give_time(id)
    assert.is_true(times < 10, "not stopped by ten interrupts")
  end
  return times, session:reply(id)
end

local function is_clean()
  assert.equal(0, native.live())
  assert.is_nil(debug.gethook())
  assert.equal("ok", session:eval("1").status)
end

describe("an evaluation that is interrupted", function()
  before_each(function() session = evaluations.session() end)
  after_each(function() session:close() end)

  async.it("ends where it runs, with `cancelled`", function()
    local id = start "while true do end"
    task.sleep(0.01)
    local times, reply = interrupt(id)
    assert.same({ 1, "cancelled" }, { times, reply.status })
    assert.matches("interrupted by the client", reply.error.message)
    assert.matches("while true do end", reply.error.traceback, 1, true)
    is_clean()
  end)

  async.it("is cancelled with what it has spawned, also while its value is told", function()
    for turns = 0, 20 do
      local id = start "tide.spawn(tide.sleep, 1000) return 1"
      for _ = 1, turns do task.sleep(0) end
      local _, reply = interrupt(id)
      assert.equal("cancelled", reply.status, turns .. " turns")
    end
    is_clean()
  end)

  async.it("ends also in one long call of ours, at the end of its patience", function()
    local reply = session:eval [[
      local value = { 1 }
      for _ = 1, 80 do value = { value, value } end
      return tide.json.encode(value)]]
    assert.equal("timeout", reply.status)
    assert.matches("cannot be paused", reply.error.message)
    is_clean()
  end)

  async.it("is told whole, once it has returned", function()
    local told = 0
    for turns = 0, 20 do
      local id = start "return 1"
      for _ = 1, turns do task.sleep(0) end
      local _, reply = interrupt(id)
      assert.equal(reply.status == "ok", reply.value ~= nil, turns .. " turns")
      if reply.value then told = told + 1 end
    end
    assert.is_true(told > 0)
    is_clean()
  end)

  async.it("ends where it awaits", function()
    local id = start "tide.event('never'):wait()"
    task.sleep(0.01)
    local times, reply = interrupt(id)
    assert.same({ 1, "cancelled" }, { times, reply.status })
  end)

  async.it("may clean up", function()
    local id = start [[
      local _ <close> = setmetatable({}, { __close = function(_, err)
        for i = 1, 1e5 do end
        print("closed", err.kind)
      end })
      while true do end
    ]]
    task.sleep(0.01)
    local _, reply = interrupt(id)
    assert.equal("closed\tcancelled\n", reply.out)
    assert.equal("out error done", reply.kinds)
  end)

  async.it("ends with all that it spawned", function()
    local id = start [[
      for i = 1, 3 do tide.spawn(function() while true do end end) end
      tide.spawn(function() tide.sleep(60) end)
    ]]
    task.sleep(0.01)
    local live = native.live()
    assert.is_true(live >= 3, live)
    local _, reply = interrupt(id)
    assert.equal("cancelled", reply.status)
    is_clean()
  end)

  async.it("makes no further call into C once it is interrupted", function()
    local calls, further = 0, 0
    _G.call = function()
      calls = calls + 1
      string.find(("x"):rep(250), "(x*)(x*)y") -- some 10 ms and more
    end
    for _ = 1, 5 do
      local id = start "while true do call() end"
      local before = calls
      while calls < before + 3 do task.sleep(0) end
      local at = calls
      local _, reply = interrupt(id)
      assert.equal("cancelled", reply.status)
      further = further + calls - at
    end
    _G.call = nil
    -- A pause right in front of the call, of which there are few, is followed by one more.
    assert.is_true(further < 5, further)
    is_clean()
  end)

  async.it("is killed by the second interrupt where it catches the first", function()
    local id = start "while true do pcall(function() while true do end end) end"
    task.sleep(0.01)
    local times, reply = interrupt(id)
    assert.same({ 2, "cancelled" }, { times, reply.status })
    is_clean()
  end)

  async.it("is killed without a second one, after a second", function()
    local id = start "while true do pcall(function() while true do end end) end"
    task.sleep(0.01)
    session:ask { type = "interrupt", of = id }
    assert.equal("cancelled", session:finish(id).status)
    is_clean()
  end)

  async.it("is reached through a shield by the second", function()
    for _, body in ipairs { "tide.sleep(60)", "while true do end" } do
      local id = start(("tide.shield('1m', function() %s end)"):format(body))
      task.sleep(0.01)
      local times, reply = interrupt(id)
      assert.same({ 2, "cancelled" }, { times, reply.status })
    end
    is_clean()
  end)

  async.it("is closed by the third where it awaits in spite of all", function()
    local id = start [[
      while true do
        pcall(tide.shield, "1m", function()
          while true do pcall(tide.sleep, 60) end
        end)
      end
    ]]
    task.sleep(0.01)
    local times, reply = interrupt(id)
    assert.is_true(times <= 3, times)
    assert.equal("cancelled", reply.status)
    is_clean()
  end)

  async.it("prints nothing once it is done", function()
    local id = start [[
      while true do pcall(function() while true do print "still here" end end) end
    ]]
    task.sleep(0.01)
    interrupt(id)
    local count = #session.messages
    assert.equal("done", session.messages[count].type)
    task.sleep(0.02)
    assert.equal(count, #session.messages)
  end)

  async.it("leaves what the application made of it alone", function()
    local outside = coroutine.create(function()
      for i = 1, 1e6 do
        if i % 1e5 == 0 then coroutine.yield(i) end
      end
      return "over"
    end)
    _G.outside = outside
    assert.equal("100000", session:eval("select(2, coroutine.resume(outside))").text)
    _G.outside = nil
    local _, value
    repeat _, value = coroutine.resume(outside) until coroutine.status(outside) == "dead"
    assert.equal("over", value)
    assert.is_nil(debug.gethook(outside))
  end)

  async.it("ends with its session, whatever it does", function()
    start "while true do pcall(function() while true do end end) end"
    start "tide.shield('1m', function() while true do pcall(tide.sleep, 60) end end)"
    session:close()
    local began = core.clock.now()
    while native.live() > 0 do
      task.sleep(0.01)
      assert.is_true(core.clock.now() - began < 2 + PROMPT)
    end
    session = evaluations.session()
    is_clean()
  end)
end)

describe("an evaluation at its deadline", function()
  before_each(function()
    session = evaluations.session()
    _G.made_before = coroutine.create(function()
      local _ <close> = setmetatable({}, { __close = function() while true do end end })
      coroutine.yield()
    end)
    coroutine.resume(_G.made_before)
  end)
  after_each(function()
    session:close()
    _G.made_before = nil
  end)

  for name, source in pairs {
    ["that spins"] = "while true do end",
    ["that awaits"] = "tide.sleep(60)",
    ["that awaits again and again"] = "while true do tide.sleep(0.001) end",
    ["that gives way"] = "while true do tide.sleep(0) end",
    ["whose tasks spin"] = "tide.spawn(function() while true do end end)",
    ["that sorts"] = "table.sort({ 1, 2, 3 }, function() while true do end end)",
    ["in C that calls C"] = "while true do ('a'):rep(1e6):gsub('.', string.upper) end",
    ["that catches"] = "while true do pcall(function() while true do end end) end",
    ["that closes a coroutine of another's"] = "coroutine.close(made_before)",
    ["in a shield"] = "tide.shield('1m', function() while true do end end)",
    ["that awaits in a shield"] = "tide.shield('1m', tide.sleep, 60)",
  } do
    async.it(name .. " has timed out", function()
      local began = core.clock.now()
      local reply = session:eval(source, { timeout = 0.1 })
      local seconds = core.clock.now() - began
      assert.equal("timeout", reply.status)
      assert.matches("deadline of 0.1 s", reply.error.message)
      -- The grace of a task is 1 s.
      assert.is_true(seconds >= 0.1 and seconds < 1.1 + PROMPT, seconds)
      is_clean()
    end)
  end

  async.it("has timed out, too, where it holds the loop for 2 s", function()
    local reply = session:eval "table.sort({ 1, 2, 3 }, function() while true do end end)"
    assert.equal("timeout", reply.status)
    assert.matches("cannot be paused", reply.error.message)
    is_clean()
  end)
end)

-- Each script of the corpus that an interrupt can reach at all.
describe("the runaway", function()
  before_each(function() session = evaluations.session() end)
  after_each(function() session:close() end)

  for _, case in ipairs(corpus.load()) do
    if case.expect == "raised at its deadline" then
      async.it(case.name .. " can be interrupted at the console", function()
        local id = start(case.code)
        task.sleep(0.02)
        local times, reply = interrupt(id)
        -- It wants to take the hook off, and learns why it may not.
        local refused = case.code:find "debug%.sethook" ~= nil
        assert.equal(refused and "error" or "cancelled", reply.status)
        assert.is_true(times <= 2, case.name .. " took " .. times)
        is_clean()
      end)
    end
  end
end)
