-- Signal, end of the script, its error, an error of nobody, os.exit: each goes through the one
-- pipeline, whose hook awaits, and each has its exit code.
local proc = require "support.process"

local HEAD = [[
local tide = require "moontide"
tide.shutdown:on("marker", function(reason)
  tide.sleep(0.05)
  io.stdout:write("hook ", reason.kind, "\n")
  io.stdout:flush()
end)
]]

local STAY = "tide.spawn(function() tide.sleep(60) end)\n"

---@type table<string, { script: string, code: integer, reason: string, signal: string|nil }>
local ways = {
  ["the end of the script"] = { script = "", code = 0, reason = "script%-end" },
  ["os.exit in the main chunk"] = {
    script = "os.exit(0)\nprint 'went on'", code = 0, reason = "exit",
  },
  ["os.exit with a code in a task"] = {
    script = STAY .. "tide.spawn(function() os.exit(3) print 'went on' end)", code = 3,
    reason = "exit",
  },
  ["os.exit under a pcall"] = {
    script = STAY .. "tide.spawn(function() pcall(os.exit, 4) print 'went on' end)", code = 4,
    reason = "exit",
  },
  ["os.exit in a luv callback"] = {
    script = STAY .. [[
      local timer = require("luv").new_timer()
      timer:start(10, 0, function() os.exit(5) print 'went on' end)]],
    code = 5, reason = "exit",
  },
  ["os.exit in a startup phase"] = {
    script = "tide.startup:phase('a', function() os.exit(6) print 'went on' end)", code = 6,
    reason = "exit",
  },
  ["os.exit(0) in a startup phase, which is no failure"] = {
    script = "tide.startup:phase('a', function() os.exit(0) print 'went on' end)", code = 0,
    reason = "exit",
  },
  ["os.exit in what tide.timeout runs"] = {
    script = STAY .. "tide.timeout('1s', function() os.exit(7) end) print 'went on'", code = 7,
    reason = "exit",
  },
  ["os.exit in a check, once"] = {
    script = STAY .. "tide.check('c', { every = '10ms' }, function() os.exit(8) end)", code = 8,
    reason = "exit",
  },
  ["os.exit in a state observer"] = {
    script = STAY .. "tide.on_state(function(_, to) if to == 'ready' then os.exit(9) end end)",
    code = 9, reason = "exit",
  },
  ["os.exit in an observer of the last state"] = {
    script = STAY .. "tide.on_state(function() os.exit(9) end) tide.terminate()",
    code = 9, reason = "actor%-system%-terminate",
  },
  ["an error in the main chunk"] = {
    script = "local t = nil; t.x = 1", code = 1, reason = "uncaught%-error",
  },
  ["an error in a task"] = {
    script = STAY .. "tide.spawn(function() tide.sleep(0.01) error 'boom' end)", code = 1,
    reason = "uncaught%-error",
  },
  ["an error in a luv callback"] = {
    script = STAY .. [[
      local timer = require("luv").new_timer()
      timer:start(10, 0, function() error "boom" end)]],
    code = 1, reason = "uncaught%-error",
  },
  ["a failed startup phase"] = {
    script = "tide.startup:phase('a', function() error 'boom' end)", code = 1,
    reason = "startup%-failed",
  },
  SIGTERM = { script = STAY, code = 0, reason = "process%-terminate", signal = "TERM" },
  SIGINT = { script = STAY, code = 0, reason = "process%-terminate", signal = "INT" },
}

describe("the shutdown pipeline runs at", function()
  for name, way in pairs(ways) do
    it(name, function()
      local app = proc.start { script = HEAD .. way.script }
      if way.signal then
        app:wait_ready()
        app:signal(way.signal)
      end
      local code, signal = app:wait()
      assert.equal(way.code, code)
      assert.is_nil(signal)
      assert.matches("^hook " .. way.reason .. "\n$", app:stdout())
    end)
  end

  it("a shutdown that a script asks for, which ends what it waits with", function()
    local app = proc.start { script = HEAD .. [[
      tide.spawn(function()
        tide.shutdown:run("admin")
        local ok, err = pcall(tide.sleep, 60)
        io.stdout:write(tostring(err), "\n")
      end)]] }
    assert.equal(0, (app:wait()))
    assert.matches("hook admin\ncancelled: the process shuts down: admin\n", app:stdout())
  end)
end)

describe("with run_by_process_exit off", function()
  local OFF = HEAD .. "tide.config { shutdown = { run_by_process_exit = false } }\n"

  for _, place in ipairs { "os.exit(5)", "tide.startup:phase('a', function() os.exit(5) end)" } do
    it("nothing runs after " .. place, function()
      local app = proc.start { script = OFF .. place }
      assert.equal(5, (app:wait()))
      assert.equal("", app:stdout())
      assert.equal(5, app:wait_log { msg = "stopped" }.exit_code)
    end)
  end
end)

describe("an exit without the pipeline", function()
  it("ends with the total where another task spins", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.config { shutdown = { run_by_process_exit = false, timeout = "500ms", linger = 0 } }
      tide.spawn(function() os.exit(0) end)
      tide.spawn(function() while true do end end)
    ]] }
    assert.equal(1, (app:wait(5)))
    assert.truthy(app:wait_log { component = "watchdog" })
  end)
end)

describe("the record of an exit", function()
  it("names the later reason that made the code", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.shutdown:on("leaves", function() os.exit(6) end)
    ]] }
    assert.equal(6, (app:wait()))
    local last = app:wait_log { msg = "stopped" }
    assert.equal("exit 6: script-end; then exit (code 6)", last.why)
  end)
end)

describe("an uncaught error", function()
  it("leaves the process up where the policy is log", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.config { uncaught = { task = "log" } }
      tide.spawn(function() error "boom" end)
      tide.spawn(function() tide.sleep(60) end)
    ]] }
    app:wait_log { level = "error", kind = "task" }
    app:wait_ready()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)
end)
