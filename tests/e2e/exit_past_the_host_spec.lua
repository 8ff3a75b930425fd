-- exit(3) called where no pipeline can hear it, here by os.exit in a thread with a Lua state of its
-- own: the code stays, and the log says that nothing was shut down.
local proc = require "support.process"

local THREADS = {
  ["of luv's pool"] = "uv.new_work(function() os.exit(3) end, function() end):queue()",
  ["of its own"] = "uv.new_thread(function() os.exit(3) end)",
}

describe("exit in a thread", function()
  for name, start in pairs(THREADS) do
    it(name .. " keeps its code and is a record", function()
      local code, out, err, app = proc.run { script = ([[
        local tide, uv = require "moontide", require "luv"
        tide.shutdown:on("hook", function() print "hook" end)
        tide.log.info "before"
        print "buffered"
        %s
        tide.run_until_terminated()]]):format(start) }
      assert.equal(3, code, err)
      assert.equal("buffered\n", out)
      local record = app:wait_log { level = "error", component = "host" }
      assert.matches("no shutdown has run", record.msg)
      assert.equal(3, record.exit_code)
      assert.equal(1, #app:find_logs { msg = "before" })
    end)
  end

  it("is not what an ordinary end is taken for", function()
    local code, _, _, app = proc.run { script = "require 'moontide'\nos.exit(4)" }
    assert.equal(4, code)
    assert.same({}, app:find_logs { component = "host" })
  end)
end)
