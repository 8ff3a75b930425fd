-- Lua tells of an error in a finalizer by a warning only: it goes to the log, and so does what a
-- script warns of itself.
local proc = require "support.process"

describe("a Lua warning", function()
  it("about an error in __gc is a record", function()
    local code, _, _, app = proc.run { script = [[
      require "moontide"
      setmetatable({}, { __gc = function() error "lost" end })
      collectgarbage()]] }
    assert.equal(0, code)
    local record = app:wait_log { level = "warn", component = "lua" }
    assert.matches("__gc.*app.lua:2: lost", record.warning)
  end)

  it("of the script's own is one record, however many pieces it has", function()
    local code, _, _, app = proc.run { script = [[
      require "moontide"
      warn("two ", "pieces")]] }
    assert.equal(0, code)
    local records = app:find_logs { level = "warn", component = "lua" }
    assert.equal(1, #records)
    assert.equal("two pieces", records[1].warning)
  end)
end)
