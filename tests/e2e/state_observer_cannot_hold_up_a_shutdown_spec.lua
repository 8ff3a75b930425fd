-- An observer is called in the middle of the move to draining: whatever it does, the pipeline runs.
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { timeout = 5 } }
tide.on_state(function(_, to)
  if to == "draining" then %s end
end)
tide.shutdown:on("marker", function() io.stdout:write "hook\n" io.stdout:flush() end)
tide.spawn(function()
  tide.sleep(0.01)
  tide.terminate()
end)
]]

describe("a state observer that", function()
  for what, code in pairs {
    ["sleeps"] = "tide.sleep(60)",
    ["yields"] = "coroutine.yield()",
    ["spins"] = "while true do end",
    ["spins behind a pcall"] = "while true do pcall(function() while true do end end) end",
    ["calls os.exit"] = "os.exit(0)",
    ["raises nil"] = "error()",
  } do
    it(what .. " does not hold up the shutdown", function()
      local app = proc.start { script = SCRIPT:format(code) }
      assert.equal(0, (app:wait()))
      assert.equal("hook\n", app:stdout())
    end)
  end
end)
