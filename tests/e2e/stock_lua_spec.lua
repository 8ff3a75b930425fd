-- `require "moontide"` in a stock interpreter: nothing of the process is touched before
-- run_until_terminated, which runs the loop; afterwards the process is its own again.
local proc = require "support.process"

local function start(script, env)
  return proc.start_lua { script = script, env = env }
end

describe("a stock interpreter", function()
  it("starts up, serves its phases, and exits 0 on SIGTERM", function()
    local app = start [[
      local tide = require "moontide"
      local function say(text) io.stdout:write(text, "\n") io.stdout:flush() end
      tide.startup:phase("db", function() tide.sleep(0.01) say "db" end)
      tide.shutdown:on("hook", function(reason) tide.sleep(0.01) say(reason.signal) end)
      tide.on_state(function(_, to) say(to) end)
      tide.run_until_terminated()]]
    app:wait_stdout "ready"
    app:signal "TERM"
    local code, signal = app:wait()
    assert.equal(0, code)
    assert.is_nil(signal)
    assert.equal("db\nready\ndraining\nSIGTERM\nstopped\n", app:stdout())
  end)

  it("ends with the code of os.exit, by the pipeline", function()
    local app = start [[
      local tide = require "moontide"
      tide.shutdown:on("hook", function() io.stdout:write "hook\n" end)
      tide.startup:phase("a", function() os.exit(7) end)
      tide.run_until_terminated()]]
    assert.equal(7, (app:wait()))
    assert.equal("hook\n", app:stdout())
  end)

  it("is left alone by a script that never hands over: its signals kill it, its exit is its own",
    function()
    local app = start [[
      local tide = require "moontide"
      tide.shutdown:on("hook", function() io.stdout:write "hook\n" end)
      os.exit(9)]]
    assert.equal(9, (app:wait()))
    assert.equal("", app:stdout())
  end)

  it("goes on after run_until_terminated where exit_process is off", function()
    local app = start [[
      local tide = require "moontide"
      tide.config { shutdown = { exit_process = false } }
      tide.startup:phase("a", function() tide.shutdown:run("admin") end)
      local before = os.exit
      io.stdout:write("code ", tide.run_until_terminated(), "\n")
      os.exit(11)]]
    assert.equal(11, (app:wait()))
    assert.equal("code 0\n", app:stdout())
  end)

  it("is told when luv came first and has a loop of its own", function()
    local app = start [[
      local luv = require "luv"
      local tide = require "moontide"
      assert(luv.new_timer())
      tide.run_until_terminated()]]
    app:wait_log { level = "warn", component = "host" }
    app:signal "TERM"
    app:wait()
    assert.matches("require moontide first", app:stderr())
  end)

  it("raises what is wrong with the pipelines", function()
    local app = start [[
      local tide = require "moontide"
      tide.startup:phase("a", { after = "nowhere" })
      tide.run_until_terminated()]]
    assert.equal(1, (app:wait()))
    assert.matches("unknown phase", app:stderr())
  end)
end)
