local lifecycle = require "support.lifecycle"

describe("systemd", function()
  local life

  local function app()
    life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.startup:phase("db", function() tide.sleep(1) end)
      tide.shutdown:task("service-stop", "slow", function() tide.sleep(2) end)
    end, { notify = { watchdog = 5 } })
    return life
  end

  local function sent(pattern)
    local found = {}
    for _, lines in ipairs(life.sent) do
      if lines:find(pattern) then found[#found + 1] = lines end
    end
    return found
  end

  it("hears of the phase, of ready with a sign of life, and of the stop with its time", function()
    app()
    assert.equal(1, #sent "STATUS=phase db")
    life:advance(1)
    assert.equal("READY=1\nSTATUS=ready\nWATCHDOG=1", sent("READY=1")[1])
    life:signal "SIGTERM"
    local stopping = sent("STOPPING=1")[1]
    assert.matches("EXTEND_TIMEOUT_USEC=40000000", stopping)
    assert.matches("SIGTERM", stopping)
    assert.matches("EXTEND_TIMEOUT_USEC=%d+", sent("STATUS=phase service%-stop")[1])
  end)

  it("gets a sign of life each interval, from the loop", function()
    app()
    life:advance(16)
    assert.equal(4, #sent "^WATCHDOG=1$") -- one at once, then at 5, 10 and 15 s
  end)

  it("hears of a reload, and of its end", function()
    life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.on_signal("SIGHUP", function() tide.sleep(1) end)
    end, { notify = {} })
    life:signal "SIGHUP"
    assert.matches("^RELOADING=1\nMONOTONIC_USEC=%d+$", sent("RELOADING")[1])
    assert.equal(1, #sent "READY=1")
    life:advance(1)
    assert.equal(2, #sent "READY=1")
  end)

  it("is not spoken to without a socket", function()
    life = lifecycle.new(function() end)
    life:advance(1)
    assert.same({}, life.sent)
  end)
end)
