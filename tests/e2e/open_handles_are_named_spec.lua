-- What a script has opened and not closed can be found: tide.handles() and the state dump name the
-- line that made it, also for a timer that is stopped and forgotten.
local proc = require "support.process"

local APP = [[
local tide, uv = require "moontide", require "luv"
local stopped = uv.new_timer()
stopped:start(60000, 0, function() end)
stopped:stop()
local active = uv.new_timer()
active:start(60000, 0, function() end)
uv.new_pipe(false):close()
for _, handle in ipairs(tide.handles()) do
  print(handle.type, handle.active, handle.site:match "app.lua:%d+")
end
io.stdout:flush()
]]

describe("an open luv handle", function()
  it("is listed with its type and the line that made it, until it is closed", function()
    local app = proc.start { script = APP .. "tide.run_until_terminated()" }
    app:wait_ready()
    assert.equal("timer\tfalse\tapp.lua:2\ntimer\ttrue\tapp.lua:5\n", app:stdout())
    app:signal "QUIT"
    local record = app:wait_log { component = "dump", msg = "open handle: timer, not active" }
    assert.matches("app.lua:2$", record.site)
  end)

  it("is no longer listed once it is closed, whatever the collector has got to", function()
    local code, out, err = proc.run { script = [[
      local tide, uv = require "moontide", require "luv"
      for _ = 1, 200 do
        for _ = 1, 50 do uv.new_timer():close() end
        tide.sleep(0.0001) -- luv has let go of them; they may or may not be collected yet
        collectgarbage "step"
        if #tide.handles() > 0 then error "still there" end
      end
      print "none"]] }
    assert.equal(0, code, err)
    assert.equal("none\n", out)
  end)

  it("leaves nothing when it is closed", function()
    local code, out, err = proc.run { script = [[
      local tide, uv = require "moontide", require "luv"
      local function round()
        for _ = 1, 1000 do uv.new_timer():start(60000, 0, function() end) end
        for _, handle in ipairs(tide.handles()) do handle.handle:close() end
        tide.sleep(0.001) -- a turn of the loop closes them
        collectgarbage()
        collectgarbage()
      end
      for _ = 1, 5 do round() end
      local before = collectgarbage "count"
      for _ = 1, 50 do round() end
      local grown = collectgarbage "count" - before
      print(#tide.handles(), grown < 100 or grown)]] }
    assert.equal(0, code, err)
    assert.equal("0\ttrue\n", out)
  end)
end)
