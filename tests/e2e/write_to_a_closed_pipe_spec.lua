-- A reader that goes away is an error of the write, never a signal that ends the process.
local proc = require "support.process"

describe("a write to a pipe whose reader has gone", function()
  it("fails with EPIPE, and the process goes on", function()
    local code, out, err = proc.run { script = [[
      local tide, uv = require "moontide", require "luv"
      tide.shutdown:on("hook", function() print "hook" end)
      local fds = uv.pipe({}, {})
      uv.fs_close(fds.read)
      local pipe, done = uv.new_pipe(false), tide.event "written"
      pipe:open(fds.write)
      pipe:write("x", function(failed) done:set(failed or "written") end)
      print(done:wait())
      local file = assert(io.popen("exec true", "w"))
      tide.sleep(0.1) -- the reader has ended by then
      file:setvbuf "no"
      print((select(2, file:write "x")))]] }
    assert.equal(0, code, err)
    assert.equal("EPIPE\nBroken pipe\nhook\n", out)
  end)
end)
