local lifecycle = require "support.lifecycle"

describe("a heartbeat", function()
  local life, heart

  before_each(function()
    life = lifecycle.new(function(tide, world)
      world.alive = true
      heart = tide.heartbeat("outbox", { every = "5s", stale_after = "20s" })
    end)
  end)

  local function stale_records() return life:logged { message = "^worker.stale$" } end

  it("is served with the time at which silence counts", function()
    heart:beat { sent = 3 }
    local health = life.health["worker:outbox"]
    assert.is_true(health.ok)
    assert.is_true(math.abs(health.expires_at - life.tide.now() - 20) < 0.01)
    assert.matches("sent", health.extra)
  end)

  it("says once that it is stale, and again only after a beat", function()
    life:advance(19)
    assert.equal(0, #stale_records())
    life:advance(60)
    assert.equal(1, #stale_records())
    assert.equal("outbox", stale_records()[1].fields.worker)
    heart:beat()
    life:advance(1)
    assert.equal(1, #life:logged { message = "^worker.recovered$" })
    life:advance(60)
    assert.equal(2, #stale_records())
  end)

  it("lets a declared long step be silent", function()
    heart:busy "2m"
    life:advance(119)
    assert.equal(0, #stale_records())
    life:advance(2)
    assert.equal(1, #stale_records())
  end)

  it("is not made stale earlier by a short step", function()
    heart:busy "1s"
    life:advance(19)
    assert.equal(0, #stale_records())
    life:advance(2)
    assert.equal(1, #stale_records())
  end)

  it("is stale in its time again after the beat that ends a long step", function()
    heart:busy "10m"
    life:advance(1)
    heart:beat()
    life:advance(42)
    assert.equal(1, #stale_records())
  end)

  it("counts its time from ready on, not from the load", function()
    life = lifecycle.new(function(tide, world)
      world.alive = true
      heart = tide.heartbeat("slow-start", { every = "1s", stale_after = "3s" })
      tide.startup:phase("db", function() tide.sleep(20) end)
    end)
    life:advance(22)
    assert.equal(0, #stale_records())
  end)

  it("refuses a stale_after below every", function()
    life = lifecycle.new(function(tide) tide.heartbeat("x", { every = 5, stale_after = 1 }) end)
    assert.equal(78, life.code)
  end)
end)
