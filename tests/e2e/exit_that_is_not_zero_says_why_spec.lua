-- An exit code that is not 0 comes with a line that a person can act on.
local proc = require "support.process"

local STUCK = "local _ = (('a'):rep(40)):find(('a?'):rep(40) .. ('a'):rep(40) .. 'b')"

---@type table<string, { script: string, code: integer, says: string, env: table|nil }>
local ways = {
  ["a syntax error"] = { script = "x = = 1\n", code = 78, says = "app.lua:1: " },
  ["an error in the main chunk"] = { script = "error 'boom'\n", code = 1, says = "boom" },
  ["a failed startup"] = {
    script = "require('moontide').startup:phase('db', function() error 'refused' end)\n",
    code = 1, says = "refused",
  },
  ["a startup that takes too long"] = {
    script = "local tide = require 'moontide'\n"
      .. "tide.startup:phase('db', function() tide.sleep(60) end)",
    env = { MOONTIDE_STARTUP_TIMEOUT = "300ms" }, code = 1, says = "startup total",
  },
  ["a startup that is stuck"] = {
    script = "require('moontide').startup:phase('db', function() " .. STUCK .. " end)\n",
    env = { MOONTIDE_STARTUP_TIMEOUT = "500ms" }, code = 1, says = "startup total",
  },
  ["a shutdown that is stuck"] = {
    script = "require('moontide').shutdown:on('hook', function() " .. STUCK .. " end)\n",
    env = { MOONTIDE_SHUTDOWN_TIMEOUT = "500ms", MOONTIDE_SHUTDOWN__DRAIN = 0,
      MOONTIDE_SHUTDOWN__TERMINATE_DRAIN = 0 }, code = 1, says = "shutdown total",
  },
  ["an aborted shutdown"] = {
    script = [[local tide = require "moontide"
      tide.shutdown:phase("strict", { after = "service-stop", recover = false })
      tide.shutdown:task("strict", "bad", function() error "disk full" end)]],
    code = 1, says = "disk full",
  },
  ["os.exit"] = { script = "require 'moontide'\nos.exit(9)", code = 9, says = "code=9" },
}

describe("an exit code that is not zero says why after", function()
  for name, way in pairs(ways) do
    it(name, function()
      local env = { MOONTIDE_LOG__FORMAT = "logfmt" }
      for key, value in pairs(way.env or {}) do env[key] = value end
      local code, _, err = proc.run { script = way.script, env = env }
      assert.equal(way.code, code)
      assert.is_truthy(err:find(way.says, 1, true), err)
    end)
  end

  it("a third SIGINT", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.shutdown:task("actor-system-terminate", "hang", function()
        tide.shield("20s", function() tide.sleep(20) end)
      end)
      tide.run_until_terminated()]] }
    app:wait_ready()
    -- One after the other has been heard: signals that pend together are one.
    app:signal "INT"
    app:wait_log "shutdown: process%-terminate"
    app:signal "INT"
    app:wait_log "second SIGINT"
    app:signal "INT"
    assert.equal(130, (app:wait()))
    assert.matches("SIGINT", app:stderr())
  end)
end)
