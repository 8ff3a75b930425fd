-- The loop is the host's: a script cannot run, stop, walk or close it, nor wait for it inside a
-- callback; the refusal is an error of the caller, and the process goes on.
local proc = require "support.process"

local HEAD = "local tide, uv = require 'moontide', require 'luv'\n"

describe("luv in a script", function()
  for _, name in ipairs { "run", "stop", "walk", "loop_close" } do
    it("refuses uv." .. name .. " everywhere, and says why", function()
      local code, out, err = proc.run { script = HEAD .. ([[
        local function try(where)
          print(where, pcall(function() uv.%s(function(handle) handle:close() end) end))
        end
        try "main"
        local called = tide.event "called"
        uv.new_timer():start(1, 0, function() try "callback" called:set(true) end)
        called:wait()
        tide.spawn(function() try "task" end):await()
        tide.sleep(0.01)
        print "went on"]]):format(name) }
      assert.equal(0, code, err)
      for _, where in ipairs { "main", "callback", "task" } do
        assert.matches(where .. "\tfalse\t.*app.lua:%d+: uv." .. name .. " is not available here",
          out)
      end
      assert.matches("went on\n$", out)
    end)
  end

  it("makes a wait inside a callback an error of that callback, not an abort", function()
    local code, _, err, app = proc.run { script = HEAD .. [[
      tide.config { uncaught = { callback = "log" } }
      uv.new_timer():start(1, 0, function() tide.sleep(1) end)
      uv.new_timer():start(2, 0, function() tide.run_until_terminated() end)
      uv.new_timer():start(3, 0, function() tide.shutdown:run("admin"):await() end)
      tide.sleep(10)
      ]] }
    assert.equal(0, code, err) -- that the shutdown, which did begin, ends with
    local errors = app:find_logs { level = "error", kind = "luv callback" }
    assert.equal(3, #errors, err)
    for i, record in ipairs(errors) do -- each names the line that waits
      assert.matches(("app.lua:%d: "):format(i + 2), record.msg, 1, true)
    end
  end)

  it("does not hold a process up by a wait that was refused", function()
    local code, out, err = proc.run { script = HEAD .. [[
      tide.config { uncaught = { callback = "log" } }
      uv.new_timer():start(1, 0, function() tide.run_until_terminated() end)
      tide.sleep(0.05)
      print(tide.state())]] }
    assert.equal(0, code, err)
    assert.equal("starting\n", out) -- and not sealed in the middle of the load
  end)

  it("refuses a second loop inside the first in a stock interpreter, too", function()
    local app = proc.start_lua { script = HEAD .. [[
      tide.startup:phase("a", function()
        print(pcall(tide.run_until_terminated))
        local called = tide.event "called"
        uv.new_timer():start(1, 0, function()
          print(pcall(tide.run_until_terminated))
          called:set(true)
        end)
        called:wait()
        os.exit(6)
      end)
      tide.run_until_terminated()]] }
    assert.equal(6, (app:wait()), app:stderr())
    local _, count = app:stdout():gsub("false\t[^\n]*run_until_terminated is running already", "")
    assert.equal(2, count, app:stdout())
  end)

  it("may close a handle twice, or one that is the host's no more", function()
    local code, out, err = proc.run { script = HEAD .. [[
      local timer = uv.new_timer()
      timer:close()
      print(pcall(timer.close, timer))
      print(#tide.handles())]] }
    assert.equal(0, code, err)
    assert.matches("^false\t.*closing.*\n0\n$", out)
  end)
end)
