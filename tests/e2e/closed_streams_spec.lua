-- Started with its standard streams closed (cron, nohup, a careless supervisor).
local proc = require "support.process"

local APP = [[
  local uv = require "luv"
  local file = assert(io.open(os.getenv "OUT", "w"))
  for fd = 0, 2 do file:write(uv.fs_readlink("/proc/self/fd/" .. fd), "\n") end
  file:close()
  print("lost")
  require("moontide").log.error("lost as well")
]]

describe("with closed standard streams", function()
  it("writes its log into nothing, not into its own sockets", function()
    local dir = proc.temp_dir()
    proc.write_file(dir .. "/app.lua", APP)
    local code = proc.run {
      program = "/bin/sh", argv = { "-c", '"$0" "$1" <&- >&- 2>&-', os.getenv "MOONTIDE",
        dir .. "/app.lua" },
      env = { OUT = dir .. "/out" },
    }
    assert.equal(0, code)
    assert.equal(("/dev/null\n"):rep(3), proc.read_file(dir .. "/out"))
  end)
end)
