-- A wait between two attempts that the startup total does not leave time for is not begun: the
-- failure is reported at once, by the pipeline and not by the watchdog.
local lifecycle = require "support.lifecycle"

describe("a retry policy", function()
  local life, attempts

  local function app(policy)
    attempts = {}
    life = lifecycle.new(function(tide)
      local began = tide.now()
      tide.config { startup = { timeout = "20s" } }
      tide.startup:phase("db", { on_fail = tide.retry(policy) }, function()
        attempts[#attempts + 1] = math.floor(tide.now() - began + 0.5)
        error("refused", 0)
      end)
    end)
  end

  it("fails with the attempt after which no other fits the total", function()
    app { base = "5s", factor = 3 }
    life:advance(5.1) -- the next wait would be 15 s, and 17.5 s are all there is
    assert.same({ 0, 5 }, attempts)
    assert.equal(1, life.code)
    assert.matches("refused", life:logged({ level = "error", phase = "db" })[1].message)
  end)

  it("goes on as long as there is time", function()
    app { base = "5s", factor = 1 }
    life:advance(14.9)
    assert.same({ 0, 5, 10 }, attempts)
    assert.is_nil(life.code)
    life:advance(0.3)
    assert.same({ 0, 5, 10, 15 }, attempts)
    assert.equal(1, life.code)
  end)
end)
