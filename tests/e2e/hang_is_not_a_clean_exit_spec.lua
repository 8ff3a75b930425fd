-- A task that waits for what never comes holds no handle of the loop: its deadline must hold the
-- process all the same, end it with a message, and cost a clean run nothing.
local proc = require "support.process"

local NEVER = "tide.event('never'):wait()"

local function run(script, env)
  local code, out, _, app = proc.run {
    script = "local tide = require 'moontide'\n" .. script, env = env,
  }
  return code, app, app.exited_at - app.started_at, out
end

describe("a wait for nothing", function()
  it("in startup ends with the startup total: exit 1, and it says so", function()
    local code, app, took = run(("tide.startup:phase('db', function() %s end)"):format(NEVER),
      { MOONTIDE_STARTUP_TIMEOUT = "2s" })
    assert.equal(1, code)
    -- By the pipeline, in the eighth of the total that is kept for that, not by the watchdog.
    assert.is_true(took >= 1.7 and took < 4, took .. " s")
    local record = app:wait_log { level = "error", task = "db" }
    assert.matches("timed out.*startup total", record.msg)
    assert.matches("app.lua:", record.traceback)
  end)

  it("in a phase of the shutdown ends with the phase, and the rest of it runs", function()
    local code, app, took, out = run(([[
      tide.shutdown:phase("mine", { after = "service-stop", timeout = "300ms" })
      tide.shutdown:task("mine", "hangs", function() %s end)
      tide.shutdown:task("cluster-leave", "next", function() print "next" end)]]):format(NEVER))
    assert.equal(0, code)
    assert.equal("next\n", out)
    assert.is_true(took >= 0.3, took .. " s")
    local record = app:wait_log { level = "warn", task = "hangs" }
    assert.matches("timed out after 0%.3%d* s: the timeout of phase mine, 30%dms$", record.msg)
  end)

  it("in the terminal phase ends with the shutdown total", function()
    local code, app, took = run(
      ("tide.shutdown:task('actor-system-terminate', 'hangs', function() %s end)"):format(NEVER),
      { MOONTIDE_SHUTDOWN_TIMEOUT = "4s", MOONTIDE_SHUTDOWN__TERMINATE_DRAIN = "100ms",
        MOONTIDE_SHUTDOWN__DRAIN = "100ms" })
    -- Unwound in time: the reserve, an eighth of the total, is there for that.
    assert.equal(0, code)
    assert.is_true(took >= 3 and took < 5, took .. " s")
    app:wait_log { level = "warn", task = "hangs", outcome = "timed_out" }
  end)

  it("in the terminal phase that cannot be unwound: exit 1 at the total", function()
    local code, app, took = run([[
      tide.shutdown:task("actor-system-terminate", "stuck", function()
        local _ = (("a"):rep(40)):find(("a?"):rep(40) .. ("a"):rep(40) .. "b")
      end)]], { MOONTIDE_SHUTDOWN_TIMEOUT = "1s", MOONTIDE_SHUTDOWN__TERMINATE_DRAIN = "100ms",
        MOONTIDE_SHUTDOWN__DRAIN = "100ms" })
    assert.equal(1, code)
    assert.is_true(took >= 1 and took < 2.5, took .. " s")
    app:wait_log { component = "watchdog", what = "actor-system-terminate/stuck" }
  end)
end)

describe("a run with nothing to wait for", function()
  it("is not delayed by the deadlines that it did not need", function()
    local code, _, took = run [[
      for _, name in ipairs { "a", "b", "c" } do tide.startup:phase(name, function() end) end
      for _, name in ipairs(tide.shutdown.names) do
        tide.shutdown:task(name, "quick", function() end)
      end]]
    assert.equal(0, code)
    -- The shortest of the deadlines is five seconds away.
    assert.is_true(took < 3, took .. " s")
  end)
end)
