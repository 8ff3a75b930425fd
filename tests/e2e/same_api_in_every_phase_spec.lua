-- Sleep, spawn, events, timeouts and luv timers work alike in each phase of both pipelines.
local proc = require "support.process"

local SCRIPT = [[
local tide, uv = require "moontide", require "luv"
local used = {}

local function use(where)
  tide.sleep(0.001)
  local event = tide.event "timer"
  local timer = uv.new_timer()
  timer:start(1, 0, function() timer:close() event:set(true) end)
  event:wait()
  local child = tide.spawn(function() tide.sleep(0.001) return "child" end)
  assert(child:await() == "child")
  assert(tide.timeout("1s", function() return "in time" end) == "in time")
  local results = { tide.all { function() return 1 end, function() return 2 end } }
  assert(#results > 0)
  used[#used + 1] = where
end

use "main"
tide.profiles.service()
for _, name in ipairs(tide.startup.names) do
  tide.startup:task(name, "use", function() use(name) end)
end
for _, name in ipairs(tide.shutdown.names) do
  tide.shutdown:task(name, "use", function() use(name) end)
end
tide.shutdown:task("actor-system-terminate", "say", { after = "use" }, function()
  io.stdout:write(#used, " of ", 1 + #tide.startup.names + #tide.shutdown.names, "\n")
end)
]]

describe("a task may use the whole API", function()
  it("in the main chunk and in each phase", function()
    local app = proc.start { script = SCRIPT }
    assert.equal(0, (app:wait()))
    assert.equal("30 of 30\n", app:stdout())
    assert.equal(0, #app:find_logs { level = "warn" })
  end)
end)
