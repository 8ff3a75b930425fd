-- A process stays up while something of its script can still happen, and not longer.
local loop = require "support.loop"
local proc = require "support.process"

local HEAD = 'local tide, uv = require "moontide", require "luv"\n'

local HOLD = {
  ["a listener"] = 'tide.http.listen { port = tonumber(os.getenv "PORT") }',
  ["a task of the script"] = 'tide.spawn(function() tide.event("never"):wait() end)',
  ["a worker"] = 'tide.worker("outbox", { every = "60s" }, function() end)',
  ["a luv timer"] = "uv.new_timer():start(60000, 0, function() end)",
  ["a luv server"] = [[
    local server = uv.new_tcp()
    server:bind("127.0.0.1", 0)
    server:listen(8, function() end)]],
  ["a child process"] = 'uv.spawn("/bin/sleep", { args = { "60" } }, function() end)',
}

local NOT = {
  ["nothing"] = "",
  ["a luv timer that is unreferenced"] = [[
    local timer = uv.new_timer()
    timer:start(60000, 0, function() end)
    timer:unref()]],
  ["a luv handle that is open and not active"] = "local _ = uv.new_timer()",
  ["a check"] = 'tide.check("db", { every = "10ms" }, function() return true end)',
  ["a heartbeat"] = 'tide.heartbeat("loop", { every = "60s" })',
  ["a hook"] = 'tide.shutdown:on("hook", function() end)',
  ["a signal handler"] = 'tide.on_signal("SIGHUP", function() end)',
}

describe("a process stays up for", function()
  for name, script in pairs(HOLD) do
    it(name, function()
      local app = proc.start { script = HEAD .. script, env = { MOONTIDE_SHUTDOWN__LINGER = 0 } }
      app:wait_ready()
      loop.turn_for(0.15) -- what ends by itself does so within a few milliseconds
      assert.is_true(app:is_running(), app:stderr())
      app:signal "TERM"
      assert.equal(0, (app:wait()))
      app:wait_log { msg = "stopped", reason = "process-terminate" }
    end)
  end
end)

describe("a process ends by itself with", function()
  for name, script in pairs(NOT) do
    it(name, function()
      local code, _, err, app = proc.run { script = HEAD .. script }
      assert.equal(0, code, err)
      app:wait_log { msg = "stopped", reason = "script-end" }
    end)
  end
end)
