-- A startup that hangs does not hide behind its own step: the first SIGINT rolls back what had
-- started, the second does not wait for a step that takes its time to clean up.
local proc = require "support.process"

local HEAD = [[
local tide = require "moontide"
local function say(text) io.stdout:write(text, "\n") io.stdout:flush() end
tide.component("first", { start = function() say "first up" end,
  stop = function() say "first down" end })
]]

describe("a startup that hangs", function()
  it("is rolled back by the first SIGINT", function()
    local app = proc.start { script = HEAD .. [[
      tide.component("hangs", { needs = "first", start = function()
        say "hangs"
        tide.event("never"):wait()
      end, stop = function() say "never" end })]] }
    app:wait_stdout "hangs"
    app:signal "INT"
    assert.equal(0, (app:wait()))
    assert.equal("first up\nhangs\nfirst down\n", app:stdout())
    -- Nothing in it takes time; a busy machine does.
    assert.is_true(app:seconds_to_end() < 1)
  end)

  it("gives back what it holds, as when it initialises slowly behind a lock", function()
    local app = proc.start { script = HEAD .. [[
      tide.component("lazy", { needs = "first", start = function()
        local lock <close> = setmetatable({}, { __close = function() say "unlocked" end })
        say "locked"
        while true do tide.sleep(0.01) end
      end })]] }
    app:wait_stdout "\nlocked"
    app:signal "INT"
    assert.equal(0, (app:wait()))
    assert.equal("first up\nlocked\nunlocked\nfirst down\n", app:stdout())
  end)

  it("is left at once by a second SIGINT", function()
    local app = proc.start { script = HEAD .. [[
      tide.shutdown:task("actor-system-terminate", "last", function() say "last" end)
      tide.component("stubborn", { needs = "first", start = function()
        local _ <close> = setmetatable({}, { __close = function()
          say "cleans up"
          tide.shield("20s", function() tide.sleep(20) end)
        end })
        say "hangs"
        tide.event("never"):wait()
      end })]] }
    app:wait_stdout "hangs"
    app:signal "INT"
    app:wait_stdout "cleans up"
    app:signal "INT"
    app:wait()
    -- A task that is cancelled has a second to clean up before it is abandoned.
    assert.is_true(app:seconds_to_end() < 2)
    assert.matches("last\n$", app:stdout())
  end)
end)
