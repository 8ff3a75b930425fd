-- A shutdown task that spins is stopped at its deadline, however it spins, and the pipeline goes
-- on; what no hook can reach ends with the total, which names it.
local proc = require "support.process"
local runaway = require "support.runaway"

-- The raise is a timer's and comes within a fraction of a millisecond, and the three steps take
-- 20 ms; the rest is for a machine that is busy with other tests. (tests/bench has the figures.)
local RAISED, CONTINUED = 0.25, 0.5
-- The task's own clock begins after its deadline's, by whatever the machine did in between.
local EARLY = -0.2

local function run(body, env)
  return proc.start { script = runaway.script(body), env = env }
end

local function assert_goes_on(body)
  local app = run(runaway.bodies[body] or body)
  local code = app:wait()
  assert.equal(0, code)
  local late = tonumber(app:stdout():match "raised (%S+) interrupted")
  local continued = tonumber(app:stdout():match "next (%S+)")
  if late then
    assert.is_true(late > EARLY and late < RAISED, "raised late by " .. late)
  end
  assert.is_true(continued and continued < CONTINUED, "continued after " .. tostring(continued))
  local record = app:wait_log { task = "bad", outcome = "interrupted" }
  assert.equal("warn", record.level)
  assert.truthy(record.traceback:find("app.lua", 1, true))
  return app, late
end

describe("a shutdown task that spins", function()
  it("R32: is stopped in a plain loop", function() assert_goes_on "loop" end)

  it("is stopped in a pcall loop", function()
    local _, late = assert_goes_on "pcall loop"
    assert.truthy(late)
  end)

  it("is stopped in nested coroutines", function() assert_goes_on "nested coroutines" end)

  it("is stopped in the handler of an xpcall", function()
    assert_goes_on "xpcall handler"
    assert_goes_on "while true do xpcall(error, spin) end"
  end)

  it("is stopped in a <close> variable", function()
    assert_goes_on "<close> that spins"
    assert_goes_on [[
      local _ <close> = setmetatable({}, { __close = spin })
      coroutine.wrap(function()
        local _ <close> = setmetatable({}, { __close = spin })
        spin()
      end)()
    ]]
  end)

  it("has its <close> variables run that do not spin", function()
    local app = assert_goes_on "<close> that does not"
    assert.truthy(app:stdout():find("closed 50005000", 1, true))
  end)

  it("cannot take the hook away", function()
    assert_goes_on "while true do pcall(debug.sethook) end"
  end)

  it("ends with the total in one long C call, and is named", function()
    local app = run("local _ = (('a'):rep(40)):find(('a?'):rep(40) .. ('a'):rep(40) .. 'b')",
      { MOONTIDE_SHUTDOWN_TIMEOUT = 1 })
    local code = app:wait()
    assert.equal(1, code)
    local total = app:wait_log { component = "watchdog", phase = "service-stop" }
    assert.truthy(total.msg:find("shutdown total", 1, true))
    local entry = app:wait_log { component = "watchdog", what = "service-stop/bad" }
    assert.truthy(entry.site:find("app.lua:", 1, true))
    assert.is_true(entry.age_ms > 500)
    local took = app.exited_at - app.started_at
    assert.is_true(took >= 1 and took < 2.5, took .. " s")
  end)
end)
