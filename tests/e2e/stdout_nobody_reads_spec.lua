--- What a script has printed meets a pipe that nobody reads: the process still ends
--- in the time it was given, also when the pipe is found full only at the very exit.
local proc = require "support.process"

local function start(script)
  return proc.start {
    program = "bash", manage = false, env = { SCRIPT = script },
    argv = { "-c", [[exec "$MOONTIDE" <(printf %s "$SCRIPT") > >(exec sleep 30)]] },
  }
end

describe("standard output that nobody reads", function()
  it("does not hold a print in a shutdown hook beyond the total", function()
    local app = start [[
      local tide = require "moontide"
      tide.config { shutdown = { timeout = "1s" }, manage = false }
      tide.shutdown:on("talk", function() for _ = 1, 100 do print(("x"):rep(4096)) end end)]]
    assert.equal(1, (app:wait(10)))
    assert.is_truthy(app:stderr():find("total", 1, true), app:stderr())
  end)

  it("does not hold the exit when a buffer is left to write", function()
    local app = start [[
      local tide = require "moontide"
      tide.config { shutdown = { timeout = "1s" }, manage = false }
      tide.shutdown:on("talk", function()
        io.stdout:setvbuf "full"
        io.write(("x"):rep(65536)) -- as much as a pipe takes
        io.flush()
        io.write "left over"
      end)]]
    assert.equal(1, (app:wait(10)))
  end)
end)
