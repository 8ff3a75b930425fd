require("support.paths")
local duration = require("moontide.duration")

describe("a duration", function()
  it("is a number of seconds or a text with units", function()
    assert.equal(3, duration.parse(3))
    assert.equal(0, duration.parse(0))
    assert.equal(0.25, duration.parse("250ms"))
    assert.equal(1.5, duration.parse("1.5s"))
    assert.equal(120, duration.parse("2m"))
    assert.equal(3600, duration.parse("1h"))
    assert.equal(90, duration.parse("1m30s"))
  end)

  local wrong = {
    { -1, "is negative" }, { "-1s", "is negative" }, { 0 / 0, "NaN" },
    { math.huge, "infinity" }, { "40", "has no unit" }, { "3 s", "is not a duration" },
    { "3x", "is not a duration" }, { "s", "is not a duration" }, { "", "is not a duration" },
    { "1h30", "is not a duration" }, { "none", "is not possible here" },
    { true, "a boolean is not a duration" }, { {}, "a table is not a duration" },
    { ("9"):rep(400) .. "s", "is not finite" },
  }
  for _, case in ipairs(wrong) do
    it("refuses " .. tostring(case[1]):sub(1, 20), function()
      local seconds, message = duration.parse(case[1], "timeout")
      assert.is_nil(seconds)
      assert.matches("^timeout: ", message)
      assert.matches(case[2], message, 1, true)
    end)
  end

  it("raises from check at the caller's line", function()
    local ok, message = pcall(function() duration.check(-1, "linger") end)
    assert.is_false(ok)
    assert.matches("duration_spec%.lua:%d+: linger: %-1 is negative", message)
  end)

  it("is written in the shortest way that reads back", function()
    local cases = {
      [0] = "0s", [0.25] = "250ms", [0.0005] = "0.5ms", [3] = "3s", [1.5] = "1.5s",
      [59.9999] = "1m", [90] = "1m30s", [3600] = "1h", [3661.5] = "1h1m1.5s",
    }
    for seconds, text in pairs(cases) do
      assert.equal(text, duration.format(seconds))
      assert.near(seconds, duration.parse(text), 0.001)
    end
    assert.equal("none", duration.format(math.huge))
  end)
end)
