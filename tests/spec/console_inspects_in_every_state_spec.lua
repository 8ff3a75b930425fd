-- All commands that look, and the status, answer in every state of the process, and say of it what
-- is true there.
local inspecting = require "support.inspecting"
local lifecycle = require "support.lifecycle"

local COMMANDS = {
  "tasks", "ended", "phases", "checks", "why", "handles", "conns", "mem", "loop", "timers",
  "config", "work", "status",
}

local life

local function app()
  life = lifecycle.new(function(tide, world)
    world.alive = true
    tide.startup:phase("db", function() tide.sleep(10) end)
    tide.shutdown:task("service-stop", "flush", function() tide.sleep(3) end)
    tide.shutdown:task("actor-system-terminate", "last", function() tide.sleep(3) end)
    tide.check("queue", function() return false, "it is full" end)
    tide.heartbeat "poller"
  end)
end

local function keys_of(value)
  local keys = {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local function ask_all()
  for _, name in ipairs(COMMANDS) do inspecting.ask(life, name) end
  inspecting.ask(life, "where", "asks")
  return inspecting.ask(life, "status")
end

describe("what one can ask is answered", function()
  after_each(function() inspecting.finish(life) end)

  local keys

  it("while the process starts", function()
    app()
    life:advance(1)
    local status = ask_all()
    keys = keys_of(status)
    assert.equal("starting", status.state)
    assert.equal("startup", status.pipeline.kind)
    assert.equal("db", status.phases[1].name)
    assert.matches("^startup phase db: db, 1%.%d of 30 s, sleep$", status.waiting_for[1])
    local _, text = inspecting.ask(life, "why")
    assert.matches("^not ready: it starts", text)
  end)

  it("while it is ready", function()
    app()
    life:advance(11)
    local status = ask_all()
    assert.equal("ready", status.state)
    assert.same(keys, keys_of(status))
    assert.same({}, setmetatable(status.phases, nil))
    assert.is_true(math.abs(status.state_seconds - 1) < 0.5)
    local why = inspecting.ask(life, "why")
    assert.matches("check queue is not ok: it is full", why.waiting_for[1])
  end)

  it("while it drains, with the reason and its sender", function()
    app()
    life:advance(11)
    life:signal("SIGTERM", 777)
    life:advance(1)
    local status = ask_all()
    assert.equal("draining", status.state)
    assert.same(keys, keys_of(status))
    assert.equal("SIGTERM", status.reason.signal)
    assert.equal(777, status.reason.pid)
    assert.equal("service-stop", status.phases[1].name)
    local _, text = inspecting.ask(life, "why")
    assert.matches("it shuts down: process%-terminate %(SIGTERM from pid 777%)", text)
    assert.matches("shutdown phase service%-stop: flush", text)
  end)

  it("in the last phase, when what is left is ended", function()
    app()
    life:advance(11)
    life:signal "SIGTERM"
    life:advance(4)
    local status = ask_all()
    assert.equal("draining", status.state)
    assert.equal("actor-system-terminate", status.phases[1].name)
    assert.same(keys, keys_of(status))
  end)

  it("when it has stopped", function()
    app()
    life:advance(11)
    life:signal "SIGTERM"
    life:advance(20)
    local status = ask_all()
    assert.equal("stopped", status.state)
    assert.same(keys, keys_of(status))
    local _, text = inspecting.ask(life, "why")
    assert.matches("^it has stopped", text)
  end)

  it("before there is a pipeline, while the main chunk waits", function()
    life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.sleep(5)
    end)
    life:advance(1)
    local status = ask_all()
    assert.equal("starting", status.state)
    assert.same(keys, keys_of(status))
    assert.equal(require("moontide.json").null, status.pipeline)
    assert.matches("^the main chunk, for 1%.%d s: sleep$", status.waiting_for[1])
  end)

  it("where nobody can wait: in an observer of the state, and outside of a task", function()
    app()
    local inspect, seen = require "moontide.console.inspect", {}
    local function look()
      for _, name in ipairs { "tasks", "timers", "status", "why", "phases" } do
        seen[#seen + 1] = getmetatable(inspect[name]()).__console and name
      end
    end
    require("moontide.states").on_state(look)
    life:advance(11)
    assert.same({ "tasks", "timers", "status", "why", "phases" }, seen)
    assert.same({}, life:logged { level = "error" })
    look()
    assert.equal(10, #seen)
    life:task(function() coroutine.wrap(look)() end)
    assert.equal(15, #seen)
  end)

  it("when the start has failed", function()
    life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.startup:phase("db", function() error("no route to host") end)
      tide.shutdown:task("service-stop", "flush", function() tide.sleep(3) end)
    end)
    life:advance(1)
    local status = ask_all()
    assert.equal("draining", status.state)
    assert.equal("startup-failed", status.reason.kind)
    local phases = inspecting.ask(life, "phases")
    assert.equal("failed", phases.startup.outcome)
    assert.equal(1, phases.startup.phases[1].failed)
  end)
end)
