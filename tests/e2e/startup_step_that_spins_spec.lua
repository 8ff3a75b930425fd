-- A step of the startup that computes without an end before its first await cannot keep the others
-- from starting: it is interrupted at its deadline and named.
local proc = require "support.process"

local HEAD = [[
local tide = require "moontide"
local function say(text) io.stdout:write(text, "\n") io.stdout:flush() end
local function spin() while true do end end
]]

describe("a startup step that spins", function()
  it("is interrupted at its deadline, and the next one starts", function()
    local app = proc.start { script = HEAD .. [[
      tide.startup:phase("bad", { timeout = "200ms", on_fail = "warn" }, spin)
      tide.startup:phase("next", function() say "next" end)
      tide.run_until_terminated()]] }
    app:wait_stdout "next"
    app:wait_ready()
    local record = app:wait_log { level = "warn", phase = "bad", outcome = "interrupted" }
    assert.matches("app.lua:3", record.traceback)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)

  it("does not keep those beside it from ending, which it blocks only for its own time", function()
    local app = proc.start { script = HEAD .. [[
      tide.startup:phase("both", { on_fail = "warn" })
      tide.startup:task("both", "bad", { timeout = "200ms" }, spin)
      tide.startup:task("both", "good", function() tide.sleep(0.01) say "good" end)
      tide.run_until_terminated()]] }
    app:wait_stdout "good"
    app:wait_ready()
  end)

  it("fails the startup where that is the rule, naming it", function()
    local code, out, err, app = proc.run { script = HEAD .. [[
      tide.component("first", { start = function() end, stop = function() say "first down" end })
      tide.startup:phase("bad", { timeout = "200ms" }, spin)
      tide.startup:phase("next", function() say "next" end)]] }
    assert.equal(1, code)
    assert.equal("first down\n", out)
    assert.is_truthy(app:find_logs({ level = "error", phase = "bad" })[1], err)
  end)
end)
