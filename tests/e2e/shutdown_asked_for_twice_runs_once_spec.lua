-- Whoever asks, and however often: one run, one exit.
local http = require "support.http_client"
local proc = require "support.process"

describe("a shutdown", function()
  it("that two clients ask for at once runs its hooks once", function()
    local app = proc.start {
      script = [[
        local tide = require "moontide"
        tide.shutdown:on("hook", function() tide.sleep(0.2) print "hook" end)
        tide.run_until_terminated()]],
      env = { MOONTIDE_MANAGE__TOKEN = "secret" },
    }
    app:wait_ready()
    local conns = {}
    for i = 1, 2 do conns[i] = assert(http.connect(app.manage_port)) end
    for i = 1, 2 do
      conns[i]:send_request("POST", "/lifecycle/shutdown",
        { headers = { Authorization = "Bearer secret" } })
    end
    for i = 1, 2 do assert.equal(202, assert(conns[i]:read_response()).status) end
    assert.equal(0, (app:wait()))
    assert.equal("hook\n", app:stdout())
    assert.equal(1, #app:find_logs { msg = "stopped" })
  end)

  it("that its own last task asks for again does not begin again", function()
    local code, out, _, app = proc.run { script = [[
      local tide = require "moontide"
      tide.shutdown:on("hook", function() print "hook" end)
      tide.shutdown:task("actor-system-terminate", "again", function()
        print "again"
        tide.shutdown:run("admin")
        tide.terminate()
      end)]] }
    assert.equal(0, code)
    assert.equal("hook\nagain\n", out)
    assert.equal(2, #app:find_logs "the shutdown is under way; recorded")
    assert.is_true(app.exited_at - app.started_at < 1) -- nothing in it waits
  end)

  it("that was asked for before run_until_terminated is not waited for in vain", function()
    local script = [[
      local tide = require "moontide"
      tide.shutdown:on("hook", function() io.stdout:write "hook\n" end)
      tide.shutdown:run("admin")
      tide.run_until_terminated()]]
    local code, out = proc.run { script = script }
    assert.equal(0, code)
    assert.equal("hook\n", out)
    local stock = proc.start_lua { script = script }
    assert.equal(0, (stock:wait()))
    assert.equal("hook\n", stock:stdout())
  end)

  it("that is asked for by every signal at once exits once, and cleanly", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.shutdown:task("service-stop", "slow", function() tide.sleep(0.3) print "slow" end)
      tide.run_until_terminated()]] }
    app:wait_ready()
    for _ = 1, 20 do app:signal "TERM" end
    app:signal "INT"
    assert.equal(0, (app:wait()))
    assert.equal("slow\n", app:stdout())
  end)
end)
