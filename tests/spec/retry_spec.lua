require("support.paths")
local retry = require("moontide.retry")

local function delays(policy, n)
  local list = {}
  for i = 1, n do list[i] = policy:delay(i) end
  return list
end

describe("a retry policy", function()
  it("doubles its wait up to max", function()
    local policy = retry({ base = "1s", max = "30s" })
    assert.same({ 1, 2, 4, 8, 16, 30, 30 }, delays(policy, 7))
    assert.equal(30, policy:delay(5000), "no overflow")
    assert.equal(0, retry({ base = 0, max = 0 }):delay(5000))
  end)

  it("takes its random part off the wait, so that max stays the longest", function()
    local policy = retry({ base = 10, max = 10, jitter = 0.5 })
    assert.equal(10, policy:delay(1, function() return 0 end))
    assert.equal(5, policy:delay(1, function() return 1 end))
    for _ = 1, 50 do
      local wait = policy:delay(3)
      assert.is_true(wait >= 5 and wait <= 10)
    end
  end)

  it("gives up after its attempts, the first one counted", function()
    local policy = retry({ base = 1, attempts = 3 })
    assert.is_false((policy:exhausted(1, 0)))
    assert.is_false((policy:exhausted(2, 1)))
    local given_up, why = policy:exhausted(3, 3)
    assert.is_true(given_up)
    assert.equal("3 of 3 attempts failed", why)
  end)

  it("does not begin a wait that outlasts give_up_after", function()
    local policy = retry({ base = "1s", max = "30s", give_up_after = "10s" })
    assert.is_false((policy:exhausted(1, 0)))
    assert.is_false((policy:exhausted(3, 5)))
    assert.is_true((policy:exhausted(3, 6)))
    assert.is_true((policy:exhausted(1, 20)))
  end)

  it("knows how long it can take", function()
    assert.equal(3 * 5 + 1 + 2, retry({ base = 1, attempts = 3 }):worst_case(5))
    assert.equal(300, retry({ give_up_after = "5m" }):worst_case(30))
    assert.equal(60, retry({ attempts = 1000000000, give_up_after = 60 }):worst_case(1))
    assert.equal(math.huge, retry({}):worst_case(1))
  end)

  local wrong = {
    { { bas = 1 }, "unknown option \"bas\"; did you mean \"base\"" },
    { { base = -1 }, "retry.base: -1 is negative" },
    { { base = "10s", max = "1s" }, "retry.max is shorter" },
    { { factor = 0.5 }, "retry.factor" },
    { { factor = 0 / 0 }, "retry.factor" },
    { { jitter = 2 }, "retry.jitter" },
    { { attempts = 0 }, "retry.attempts" },
    { { attempts = 2.5 }, "retry.attempts" },
    { "3 times", "options are a table" },
  }
  for _, case in ipairs(wrong) do
    it("refuses: " .. case[2], function()
      local ok, message = pcall(function() local _ = retry(case[1]) end)
      assert.is_false(ok)
      assert.matches("retry_spec%.lua:%d+: retry", message)
      assert.matches(case[2], message, 1, true)
    end)
  end
end)

describe("a permanent error", function()
  it("is told from others and reads like its cause", function()
    local err = retry.permanent("wrong password")
    assert.is_true(retry.is_permanent(err))
    assert.equal("wrong password", tostring(err))
    assert.equal(err, retry.permanent(err))
    assert.is_false(retry.is_permanent("wrong password"))
    assert.is_false(retry.is_permanent(nil))
  end)
end)
