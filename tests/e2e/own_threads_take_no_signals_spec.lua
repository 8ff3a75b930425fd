-- The host's own threads (the log's writer, the watchdog) block every stop signal, so that one is
-- never handled where nobody waits for it, and never breaks into a write.
local proc = require "support.process"
local uv = require "luv"

local TERM, INT = 1 << 14, 1 << 1

describe("the threads of the host", function()
  it("block SIGTERM and SIGINT, all but the loop's", function()
    local app = proc.start { script = "require('moontide').run_until_terminated()\n" }
    app:wait_ready()
    app:wait_log { msg = "ready" }
    local dir, others = ("/proc/%d/task"):format(app.pid), 0
    for name in uv.fs_scandir_next, (uv.fs_scandir(dir)) do
      local status = assert(proc.read_file(("%s/%s/status"):format(dir, name)))
      local blocked = tonumber(status:match "SigBlk:%s*(%x+)", 16) & (TERM | INT)
      if tonumber(name) == app.pid then
        assert.equal(0, blocked)
      else
        others = others + 1
        assert.equal(TERM | INT, blocked, status:match "Name:[^\n]*")
      end
    end
    assert.equal(2, others)
  end)
end)
