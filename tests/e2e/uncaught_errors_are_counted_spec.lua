-- Where the policy is to go on, the metrics say how often that was needed, by kind.
local http = require "support.http_client"
local proc = require "support.process"

describe("uncaught errors", function()
  it("are counted by kind in the metrics", function()
    local app = proc.start { script = [[
      local tide, uv = require "moontide", require "luv"
      tide.config { uncaught = { task = "log", callback = "log" } }
      for _ = 1, 3 do tide.spawn(function() error "boom" end) end
      for _ = 1, 2 do uv.new_timer():start(1, 0, function() error "boom" end) end
      tide.sleep(0.05)
      tide.run_until_terminated()]] }
    app:wait_ready()
    local text = http.get(app.manage_port, "/metrics").body
    assert.matches('moontide_uncaught_errors_total{kind="task"} 3\n', text, 1, true)
    assert.matches('moontide_uncaught_errors_total{kind="luv callback"} 2\n', text, 1, true)
  end)
end)
