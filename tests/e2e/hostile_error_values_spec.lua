-- An error value is the script's: whatever its metamethods do, the error is reported and the
-- process ends.
local proc = require "support.process"

local METATABLES = {
  ["spins in __tostring"] = "{ __tostring = function() while true do end end }",
  ["raises in __tostring"] = "{ __tostring = function() error 'again' end }",
  ["returns no text from __tostring"] = "{ __tostring = function() return 7 end }",
  ["awaits in __tostring"] = "{ __tostring = function() require('moontide').sleep(9) end }",
  ["raises in __index"] = "{ __index = function() error 'index' end }",
}

describe("an error value that", function()
  for what, metatable in pairs(METATABLES) do
    it(what .. " fails a task of the script", function()
      local app = proc.start { script = [[
        local tide = require "moontide"
        tide.spawn(function() error(setmetatable({}, ]] .. metatable .. [[)) end)
        tide.spawn(function() tide.sleep(60) end)
      ]] }
      assert.equal(1, (app:wait(5)))
      assert.equal("task", app:wait_log { level = "error", kind = "task" }.kind)
    end)

    it(what .. " fails a hook, and the next one runs", function()
      local app = proc.start { script = [[
        local tide = require "moontide"
        tide.shutdown:on("next", function() io.stdout:write "next\n" io.stdout:flush() end)
        tide.shutdown:on("bad", function() error(setmetatable({}, ]] .. metatable .. [[)) end)
      ]] }
      assert.equal(0, (app:wait(5)))
      assert.equal("next\n", app:stdout())
      assert.equal("bad", app:wait_log { level = "warn", outcome = "failed" }.task)
    end)
  end
end)

describe("a script that takes away what the library needs", function()
  local thefts = { "getmetatable('').__index = nil", "string.format = nil", "error = nil" }
  for _, theft in ipairs(thefts) do
    it("by " .. theft .. " does not hang", function()
      local app = proc.start { script = theft .. "\nlocal x = nil + 1\n" }
      assert.equal(1, (app:wait(5)))
    end)
  end
end)
