-- SIGTERM at random moments from exec to ready + 50 ms: it kills before the
-- handlers stand; afterwards it is never ignored, never a hang, and the stops run
-- exactly for what started. tests/bench/sigterm.lua does the same 200 times.
local random_sigterm = require "support.random_sigterm"

describe("SIGTERM at a random moment", function()
  it("ends the host in order, always", function()
    local seed = os.time()
    math.randomseed(seed)
    local runs = random_sigterm.runs(tonumber(os.getenv "MOONTIDE_SIGTERM_RUNS") or 40)
    local faults = {}
    for _, run in ipairs(runs) do
      if run.fault then faults[#faults + 1] = run.fault end
    end
    assert.equal(0, #faults, ("seed %d: %s"):format(seed, faults[1]))
  end)
end)
