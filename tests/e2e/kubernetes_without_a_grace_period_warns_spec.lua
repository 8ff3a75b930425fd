-- In a cluster the kubelet kills after the grace period of the pod, which the process cannot see:
-- without the setting it says so, once.
local proc = require "support.process"

local function warnings(env)
  local app = proc.start { script = "require('moontide').run_until_terminated()", env = env }
  app:wait_ready()
  app:signal "TERM"
  assert.equal(0, (app:wait()))
  return app:find_logs(function(record)
    return record.level == "warn" and record.msg:find "grace"
  end)
end

describe("in Kubernetes", function()
  it("an unknown grace period is one warning", function()
    assert.equal(1, #warnings { KUBERNETES_SERVICE_HOST = "10.0.0.1" })
  end)

  it("a known one is none, and elsewhere there is none to know", function()
    assert.equal(0, #warnings { KUBERNETES_SERVICE_HOST = "10.0.0.1",
      MOONTIDE_SHUTDOWN__GRACE = "60s" })
    assert.equal(0, #warnings { KUBERNETES_SERVICE_HOST = false })
  end)
end)
