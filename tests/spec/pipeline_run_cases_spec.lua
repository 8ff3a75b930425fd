-- Every "run" case of the data file: those with phases as they stand there, the rest by a function
-- of their id below. A case that is not run as it stands says so in the file (status, why).
local cases = require "support.pipeline_cases"
local json = require "support.pipeline_data"
local lifecycle = require "support.lifecycle"

local function counts(list)
  local by = {}
  for _, item in ipairs(list) do by[item] = (by[item] or 0) + 1 end
  return by
end

-- ---- what a case may expect ---------------------------------------------------------------------

local expect = {}

function expect.emits(run, wanted)
  if wanted.set then return assert.same(counts(wanted.set), counts(run.emits)) end
  if wanted.counts then return assert.same(wanted.counts, counts(run.emits)) end
  assert.same(wanted, run.emits)
end

function expect.result(run, wanted)
  local failure = run.life.tide.shutdown.run_state.failure
  if wanted == "ok" then
    assert.is_nil(failure)
    return assert.equal(0, run.life.code)
  end
  assert.is_table(failure)
  assert.equal(1, run.life.code)
  if wanted == "error:timeout" then assert.equal("timed_out", failure.outcome) end
end

function expect.reason(run, wanted)
  assert.equal(wanted, run.life.tide.shutdown.reason.text)
end

function expect.each_task_sees_reason(run, wanted)
  assert.equal(#run.emits, #run.reasons)
  for _, reason in ipairs(run.reasons) do assert.equal(wanted, reason.text) end
end

function expect.cancelled(run, names)
  for _, name in ipairs(names) do assert.is_true(run.handles[name]:cancel()) end
end

function expect.log_once(run, lines)
  for _, line in ipairs(lines) do
    local found = 0
    for _, record in ipairs(run.life:logged { level = line.level, component = "lifecycle" }) do
      local all = true
      for _, word in ipairs(line.has) do
        -- The upstream text counts in milliseconds.
        word = word == "100" and "100ms" or word
        all = all and record.message:find(word, 1, true) ~= nil
      end
      if all then found = found + 1 end
    end
    assert.equal(1, found)
  end
end

function expect.outcome(run, wanted)
  if type(wanted) == "string" then return end -- R33 looks itself
  for name, outcome in pairs(wanted) do
    local got = run.handles[name].entry.outcome
    -- A task cancelled because its time was up is "timed_out" here.
    if outcome == "cancelled" and got == "timed_out" then got = "cancelled" end
    assert.equal(outcome, got)
  end
end

function expect.max_ms(run, wanted)
  local state = run.life.tide.shutdown.run_state
  assert.is_true((state.ended_at - state.started_at) * 1000 <= wanted)
end

function expect.exit(run) assert.is_true(run.life.code ~= 0) end
function expect.reason_before(run) assert.is_nil(run.before) end

-- ---- cases that the file describes in words -----------------------------------------------------

local by_id = {}

function by_id.R03()
  local life = lifecycle.new(function(tide)
    tide.shutdown:task("service-stop", "labor", function() end)
    local ok, message = pcall(tide.shutdown.task, tide.shutdown, "service-stop", "labor",
      function() end)
    assert.is_false(ok)
    assert.matches("duplicate task \"labor\"", message)
  end)
  assert.equal(0, life.code)
end

function by_id.R05()
  local run = cases.prepare { phases = { a = {}, b = { after = { "a" } } } }
  local shutdown, handles = run.life.tide.shutdown, {}
  for i = 1, 20 do
    handles[i] = shutdown:task("a", "a" .. i, function()
      run.emits[#run.emits + 1] = "concurrentA"
      shutdown:task("b", "b" .. i, function() run.emits[#run.emits + 1] = "concurrentB" end)
    end)
  end
  for i = 2, 20, 2 do
    for _ = 1, 3 do assert.is_true(handles[i]:cancel()) end
  end
  cases.finish(run)
  assert.same({ concurrentA = 10, concurrentB = 10 }, counts(run.emits))
end

local function refused(pattern, fn)
  local message
  lifecycle.new(function(tide)
    local ok, err = pcall(fn, tide.shutdown)
    assert.is_false(ok)
    message = tostring(err)
  end)
  assert.matches(pattern, message)
  return message
end

local function nothing() end

function by_id.R14()
  refused("duplicate", function(shutdown)
    shutdown:task("service-stop", "x", nothing)
    shutdown:task("service-stop", "x", nothing)
  end)
end

function by_id.R15()
  local message = refused("unknown shutdown phase", function(shutdown)
    shutdown:task("zzzzzz", "x", nothing)
  end)
  assert.matches("service%-unbind, service%-requests%-done", message)
end

function by_id.R16()
  refused("name", function(shutdown) shutdown:task("service-stop", "", nothing) end)
end

function by_id.R17()
  local run = cases.prepare {}
  local shutdown = run.life.tide.shutdown
  local first = shutdown:task("service-stop", "x", function() run.emits[1] = "first" end)
  assert.is_true(first:cancel())
  shutdown:task("service-stop", "x", function() run.emits[1] = "second" end)
  assert.is_true(first:cancel())
  cases.finish(run)
  assert.same({ "second" }, run.emits)
end

function by_id.R18()
  refused("is built in", function(shutdown) shutdown:phase("service-stop", {}) end)
  refused("already defined", function(shutdown)
    shutdown:phase("mine", { after = "service-stop" })
    shutdown:phase("mine", { after = "service-stop" })
  end)
  local life = lifecycle.new(function(tide)
    tide.shutdown:phase("mine", { after = "servce-stop" })
  end)
  assert.equal(78, life.code)
  assert.matches("unknown", life:logged { level = "error" }[1].message)
end

function by_id.R19()
  local life = lifecycle.new(function(tide)
    tide.shutdown:phase("too-late", { after = "actor-system-terminate" })
  end)
  assert.equal(78, life.code)
  assert.matches("actor%-system%-terminate", life:logged { level = "error" }[1].message)
end

function by_id.R20()
  local run = cases.prepare {}
  local shutdown, flags = run.life.tide.shutdown, {}
  local function note() flags[#flags + 1] = { shutdown:is_running(), shutdown:is_complete() } end
  note()
  shutdown:task("service-stop", "x", note)
  cases.finish(run)
  note()
  assert.same({ { false, false }, { true, false }, { true, true } }, flags)
end

function by_id.R21()
  local run = cases.run {
    tasks = { { phase = "actor-system-terminate", name = "slow",
      ["do"] = { "sleep:30", "emit:sibling" } } },
  }
  assert.same({ "sibling" }, run.emits)
end

local function hooks(list)
  local run = cases.prepare {}
  for _, name in ipairs(list) do
    run.life.tide.shutdown:on(name, function()
      if name == "bad" then error("boom", 0) end
      run.emits[#run.emits + 1] = name
    end)
  end
  return cases.finish(run)
end

function by_id.R22()
  assert.same({ "third", "second", "first" }, hooks { "first", "second", "third" }.emits)
end

function by_id.R23()
  local run = hooks { "healthy-a", "bad", "healthy-b" }
  assert.same({ "healthy-b", "healthy-a" }, run.emits)
  local warnings = run.life:logged { level = "warn", task = "bad" }
  assert.equal(1, #warnings)
  assert.matches("bad.*boom", warnings[1].message)
end

function by_id.R24()
  local run = hooks { "a" }
  local handle, message = run.life.tide.shutdown:on("b", nothing)
  assert.is_nil(handle)
  assert.equal("phase shutdown-hooks has already run", message)
  assert.equal(1, #run.life:logged { level = "warn", message = "late_task_ignored" })
end

function by_id.R25()
  local life = lifecycle.new(function(tide)
    tide.config { shutdown = { timeout = 2, linger = 0 } }
    tide.shutdown:on("endless", function() require("moontide.task").waiter("nothing"):wait() end)
  end)
  life:advance(2)
  assert.equal("stopped", life.state)
  assert.equal("timed_out", life.tide.shutdown.tasks["shutdown-hooks"].by_name.endless.outcome)
end

function by_id.R26()
  local run = cases.prepare {}
  local hits, shutdown = 0, run.life.tide.shutdown
  shutdown:on("hook", function() hits = hits + 1 end)
  local first = shutdown:run()
  assert.equal(first, shutdown:run "admin")
  assert.equal(first, run.life.tide.terminate())
  run.life:advance(5)
  assert.equal(1, hits)
end

function by_id.R27()
  local moves, gone = {}, 0
  local life = lifecycle.new(function(tide, life)
    life.alive = true
    tide.on_state(function() error("observer broke", 0) end)
    tide.on_state(function(from, to) moves[#moves + 1] = { from, to } end)
    tide.on_state(function() gone = gone + 1 end)()
  end)
  local states = require "moontide.states"
  assert.is_false(states.move "ready")
  life.tide.shutdown:run()
  life:advance(5)
  assert.is_false(states.move "ready")
  assert.same({
    { "starting", "ready" }, { "ready", "draining" }, { "draining", "stopped" },
  }, moves)
  assert.equal(0, gone)
  assert.equal(3, #life:logged { message = "observer broke" })
end

function by_id.R28()
  local life = lifecycle.new(function(tide, life)
    life.alive = true
    tide.shutdown:task("service-stop", "x", function() tide.sleep(0.03) end)
  end)
  for _ = 1, 3 do life:signal "SIGTERM" end
  life:advance(5)
  assert.equal(1, life.stops)
  assert.equal(0, life.code)
end

function by_id.R29()
  local run = hooks { "a", "b" }
  assert.same({ "a", "b" }, run.life.tide.shutdown:hooks())
end

function by_id.R30(case)
  local run = cases.prepare(case)
  local ok, message = pcall(run.life.tide.shutdown.run, run.life.tide.shutdown, case.run)
  assert.is_false(ok)
  assert.matches("unknown shutdown phase", message)
  assert.is_false(run.life.tide.shutdown:is_running())
  cases.finish(run, {})
  assert.equal(0, run.life.code)
end

function by_id.R33()
  local err
  local run = cases.prepare {}
  local shutdown = run.life.tide.shutdown
  shutdown:task("service-stop", "x", function()
    local ok
    ok, err = pcall(function() shutdown:run():await() end)
    assert(not ok)
  end)
  cases.finish(run)
  assert.equal("self_wait", err.kind)
  local state = shutdown.run_state
  assert.is_true(state.ended_at - state.started_at < 0.1) -- the case allows 100 ms
  assert.matches("waits for the shutdown", tostring(err))
end

function by_id.R35()
  local run = cases.run {
    phases = { a = { recover = false } },
    tasks = {
      { phase = "a", name = "quick", ["do"] = { "throw:boom" } },
      { phase = "a", name = "slow", ["do"] = { "sleep:100", "emit:LATE" } },
    },
  }
  assert.same({}, run.emits)
  assert.equal("cancelled", run.handles.slow.entry.outcome)
  assert.equal(0, require("moontide.task").pipeline:count())
end

-- ---- all of them --------------------------------------------------------------------------------

local function check(case)
  if by_id[case.id] then return by_id[case.id](case) end
  local run = cases.run(case)
  assert.equal("stopped", run.life.state)
  for key, wanted in pairs(case.expect) do expect[key](run, wanted) end
  if case.id == "R04" then
    assert.equal(2, #run.life:logged { level = "warn", message = "late_task_ignored" })
  end
end

describe("run case", function()
  for _, case in ipairs(json.section "run") do
    if not case.spec then -- else another spec runs it
      it(("%s: %s"):format(case.id, case.title), function() check(case) end)
    end
  end
end)
