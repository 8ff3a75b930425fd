--- A task that swallows its cancellation gets its grace, but not at the cost of the
--- phases behind it: with a total of two seconds the reserve is a quarter of one.
local proc = require "support.process"

describe("a short total", function()
  it("closes a task that will not end in time for the last phase", function()
    local app = proc.start {
      env = { MOONTIDE_SHUTDOWN_TIMEOUT = "2s" }, manage = false,
      script = [[
        local tide = require "moontide"
        tide.config { manage = false }
        tide.shutdown:task("service-stop", "stubborn", function()
          while true do pcall(tide.sleep, 10) end
        end)
        tide.shutdown:task("actor-system-terminate", "last", function() print "last" end)]],
    }
    assert.equal(0, (app:wait(10)), app:stderr())
    assert.equal("last\n", app:stdout())
    -- By the host's own clock: when a busy machine sees the end of the process is another matter.
    assert.is_true(app:wait_log({ msg = "stopped" }).duration_ms < 2000)
    app:wait_log { level = "warn", task = "stubborn" }
  end)
end)
