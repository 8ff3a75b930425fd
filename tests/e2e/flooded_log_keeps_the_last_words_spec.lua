-- A script that logs faster than anybody reads fills the ring; the report and the record of the
-- exit come all the same, once the reader is back.
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
local text = ("x"):rep(200)
for i = 1, 20000 do tide.log.info(text, { i = i }) end
os.exit(0)
]]

describe("a log that overflowed", function()
  it("has the exit report and the last record, after what was dropped", function()
    local path = proc.temp_dir() .. "/app.lua"
    proc.write_file(path, SCRIPT)
    -- The shell's reader begins to read when the ring has long been full.
    local pipe = io.popen(("MOONTIDE_MANAGE__PORT=0 timeout 20 %s %s 2>&1 | (sleep 0.7; cat)")
      :format(os.getenv "MOONTIDE", path))
    local text = pipe:read "a"
    pipe:close()
    assert.matches("\"dropped\":%d+", text)
    assert.matches("\"component\":\"report\"", text)
    assert.matches("\"msg\":\"stopped\",\"exit_code\":0", text)
  end)
end)
