-- checks() shows each readiness check with its last result, how old that is, and how far it is from
-- turning; heartbeats beside them.
local inspecting = require "support.inspecting"
local lifecycle = require "support.lifecycle"

local life, result

local function app(opts)
  result = { true }
  life = lifecycle.new(function(tide, world)
    world.alive = true
    tide.check("db", opts or { every = "5s" }, function()
      if result.sleep then tide.sleep(result.sleep) end
      return table.unpack(result, 1, 2)
    end)
    world.beat = tide.heartbeat("poller", { every = "2s", stale_after = "6s" })
  end)
end

local function row(name)
  return inspecting.find(inspecting.ask(life, "checks").checks, { name = name })
end

describe("checks()", function()
  after_each(function() inspecting.finish(life) end)

  it("shows the last result, its age and how long it took", function()
    app()
    life:advance(2)
    local db = row "db"
    assert.same({ "ok", true, true, 5 }, { db.state, db.ok, db.critical, db.every })
    assert.is_true(db.age >= 2 and db.age < 2.5)
    result.sleep = 0.25
    life:advance(3.5)
    assert.is_true(math.abs(row("db").latency - 0.25) < 0.01)
  end)

  it("counts results in a row towards the turn", function()
    app { every = "1s", failures = 3, successes = 2 }
    result = { false, "refused" }
    life:advance(2.5)
    local db, text = row "db", select(2, inspecting.ask(life, "checks"))
    assert.same({ "ok", 2, 3 }, { db.state, db.bad, db.failures })
    assert.matches("db +ok .- 2 of 3 not ok", text)
    life:advance(1)
    db, text = row "db", select(2, inspecting.ask(life, "checks"))
    assert.same({ "not ok", "refused" }, { db.state, db.message })
    assert.matches("db +not ok .- 3 not ok +refused", text)
    result = { true }
    life:advance(1)
    assert.matches("db +not ok .- 1 of 2 ok", select(2, inspecting.ask(life, "checks")))
  end)

  it("tells a result that is too old from one that counts", function()
    app { every = "1s", timeout = "100s" }
    life:advance(0.5)
    result.sleep = 50
    life:advance(10)
    local db = row "db"
    assert.same({ "stale", false }, { db.state, db.ok })
  end)

  it("has none before the process is ready", function()
    life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.startup:phase("slow", function() tide.sleep(10) end)
      tide.check("db", function() return true end)
      tide.heartbeat "poller"
    end)
    life:advance(1)
    assert.equal("no result", row("db").state)
    assert.is_nil(row("db").ok)
    assert.equal("no result", row("poller").state)
  end)

  it("shows heartbeats with the time since the last beat", function()
    app()
    life:advance(1)
    life.beat:beat()
    life:advance(4)
    assert.equal("ok", row("poller").state)
    assert.is_true(row("poller").age >= 4 and row("poller").age < 4.5)
    life:advance(3)
    local text = select(2, inspecting.ask(life, "checks"))
    assert.same({ "stale", false }, { row("poller").state, row("poller").ok })
    assert.matches("poller %(heartbeat%) +stale", text)
  end)

  it("is empty without any, as a list", function()
    life = lifecycle.new(function(_, world) world.alive = true end)
    life:advance(1)
    local data, text = inspecting.ask(life, "checks")
    assert.equal("[]", require("moontide.json").encode(data.checks))
    assert.matches("no checks$", text)
  end)
end)
