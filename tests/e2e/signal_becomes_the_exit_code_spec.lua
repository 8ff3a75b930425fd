-- Supervisors that restart by exit code: 0 for a clean end by a signal, or 128 + n where the
-- settings ask for that.
local proc = require "support.process"

local function code_after(signal, env)
  local app = proc.start { script = "require('moontide').run_until_terminated()", env = env }
  app:wait_ready()
  app:signal(signal)
  local code, killed_by = app:wait()
  assert.is_nil(killed_by)
  return code
end

describe("the exit code after a signal", function()
  it("is 0", function()
    assert.equal(0, code_after "TERM")
    assert.equal(0, code_after "INT")
  end)

  it("is what the settings give to the reason", function()
    local env = { MOONTIDE_SHUTDOWN__REASONS__PROCESS_TERMINATE__EXIT_CODE = 143 }
    assert.equal(143, code_after("TERM", env))
  end)
end)
