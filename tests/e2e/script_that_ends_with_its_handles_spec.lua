-- A script that lives by luv handles alone: the process ends when the last of them is gone, also
-- when no Lua runs at that moment.
local proc = require "support.process"

local ENDS = {
  ["a timer that is closed in its callback"] = [[
    local timer = uv.new_timer()
    timer:start(10, 0, function() timer:close() end)]],
  ["a timer that is closed in a callback which fails"] = [[
    require("moontide").config { uncaught = { callback = "log" } }
    local timer = uv.new_timer()
    timer:start(10, 10, function() timer:close() error "boom" end)]],
  ["a process that nobody asked about"] = [[
    uv.spawn("sleep", { args = { "0.1" } })]],
  ["a timer that another callback lets go"] = [[
    local keeper, timer = uv.new_timer(), uv.new_timer()
    keeper:start(60000, 0, print)
    timer:start(10, 0, function() keeper:unref() timer:close() end)]],
  ["a socket that is closed"] = [[
    local server = uv.new_tcp()
    server:bind("127.0.0.1", 0)
    server:listen(5, print)
    local timer = uv.new_timer()
    timer:start(10, 0, function() server:close() timer:close() end)]],
}

describe("the process ends with", function()
  for what, body in pairs(ENDS) do
    it(what, function()
      local app = proc.start { script = "local uv = require 'luv'\n" .. body }
      assert.equal(0, (app:wait(5)))
      assert.equal("script-end", app:wait_log { msg = "stopped" }.reason)
    end)
  end
end)
