--- A process that cannot have a control socket says so once, and serves as ever: a container with a
--- read-only file system is no reason not to start.
local loop = require "support.loop"
local proc = require "support.process"

-- It lasts longer than the moment in which a long start opens its socket, so that there are two
-- attempts: then, and at ready.
local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = 0 } }
tide.startup:phase "slow"
tide.startup:task("slow", "sleep", function() tide.sleep("300ms") end)
tide.http.listen { port = tonumber(os.getenv "PORT") }
]]

local function is_warning(record)
  return record.component == "control" and record.level == "warn"
end

describe("a process that cannot have a control socket", function()
  it("says so once, with what can be done, and serves", function()
    local dir = proc.temp_dir()
    proc.write_file(dir .. "/file", "no directory")
    local app = proc.start { script = SCRIPT, env = { RUNTIME_DIRECTORY = dir .. "/file" } }
    app:wait_ready()
    local warning = app:wait_log(is_warning)
    assert.matches("no control socket", warning.msg)
    assert.matches("control.dir", warning.msg, 1, true)
    loop.turn_for(0.2) -- nothing is to come: the second attempt is 2 ms after ready
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.equal(1, #app:find_logs(is_warning))
  end)
end)
