-- `drain { dry = true }` shows the shutdown without an effect; `drain { reason = ... }` begins it.
local lifecycle = require "support.lifecycle"
local steering = require "support.steering"

local life, steer, tide

local function app(main, options)
  life = lifecycle.new(function(library, world)
    tide = library
    world.alive = true
    main(library)
  end, options)
  steer = steering.new(life)
end

local function phase(plan, name)
  for _, item in ipairs(plan.phases) do
    if item.name == name then return item end
  end
end

describe("drain { dry = true }", function()
  after_each(function() steer:finish() end)

  it("shows the phases with their times and tasks, and changes nothing", function()
    app(function()
      tide.shutdown:task("service-stop", "flush", function() end)
      tide.shutdown:on("bye", function() end)
    end)
    local value = steer:run("drain", { dry = true })
    assert.is_false(value.started)
    assert.equal("ready", life.state)
    assert.is_nil(tide.shutdown.reason)
    assert.same({}, steer.audited)
    assert.same({ "flush" }, table.move(phase(value.plan, "service-stop").tasks, 1, 9, 1, {}))
    assert.equal(5, phase(value.plan, "service-stop").timeout)
    assert.is_nil(phase(value.plan, "shutdown-hooks").timeout)
    assert.equal("dry run, nothing was begun; a drain would be:", value.text:match "^[^\n]+")
    assert.matches("\nservice%-stop +5s +flush +%- +%-\n", value.text)
    assert.matches("\nshutdown%-hooks +rest +bye +lifo +%-\n", value.text)
    assert.matches("nothing is in flight that it would wait for", value.text)
  end)

  it("counts as the worst case what the phases with tasks can take", function()
    app(function()
      tide.shutdown:task("service-stop", "flush", function() end)
      tide.shutdown:task("cluster-leave", "leave", function() end)
    end)
    -- service-stop 5, cluster-leave 5, actor-system-terminate 10 with its own task
    assert.equal(20, steer:run("drain", { dry = true }).plan.worst_case)
    tide.shutdown:set_phase_timeout("cluster-leave", "7s")
    assert.equal(22, steer:run("drain", { dry = true }).plan.worst_case)
  end)

  it("says when the total is shorter than that", function()
    app(function()
      tide.config { shutdown = { timeout = "12s" } }
      tide.shutdown:task("service-stop", "flush", function() end)
      tide.shutdown:task("cluster-leave", "leave", function() end)
    end)
    assert.matches("the total ends it before: the phases share 12s, 1.5s of it are kept",
      steer:run("drain", { dry = true }).text)
  end)

  it("shows what the reason console skips, and its total", function()
    app(function()
      tide.config { shutdown = { reasons = {
        console = { skip = { "cluster-leave" }, timeout = "33s" },
      } } }
      tide.shutdown:task("cluster-leave", "leave", function() end)
    end)
    local plan = steer:run("drain", { dry = true }).plan
    assert.equal(33, plan.total)
    assert.equal("reason console", phase(plan, "cluster-leave").skipped)
    assert.equal(0, phase(plan, "cluster-leave").worst)
  end)

  it("names a batch that a worker has in hand", function()
    app(function() tide.worker("mill", function() tide.sleep(60) end) end)
    life:advance(3)
    assert.matches("it would wait for, now:\n  worker mill: a batch in hand for 3s",
      steer:run("drain", { dry = true }).text)
  end)

  it("names the work of a program that embeds the host", function()
    app(function() end)
    local native = package.loaded["moontide.core.embed"]
    life.core.host.mode = "embedded"
    package.loaded["moontide.core.embed"] = { describe_work = function() return "2 frames" end }
    local text = steer:run("drain", { dry = true }).text
    package.loaded["moontide.core.embed"] = native
    assert.matches("it would wait for, now:\n  the program: 2 frames$", text)
  end)

  it("names the first of many tasks", function()
    app(function()
      for i = 1, 3000 do tide.shutdown:task("service-stop", "t" .. i, function() end) end
    end)
    local plan = steer:run("drain", { dry = true }).plan
    assert.equal(20, #phase(plan, "service-stop").tasks)
    assert.equal(3000, phase(plan, "service-stop").task_count)
  end)

  it("shows what is left of a shutdown that runs", function()
    app(function()
      tide.shutdown:task("service-unbind", "quick", function() end)
      tide.shutdown:task("service-stop", "flush", function() tide.sleep(4) end)
    end)
    life:signal "SIGTERM"
    life:advance(1)
    local value = steer:run("drain", { dry = true })
    assert.matches("^the shutdown runs: process%-terminate", value.text)
    assert.matches("worst case 14s, total 40s, of which 39s are left", value.text)
    assert.equal("ok", phase(value.plan, "service-unbind").outcome)
    assert.equal("running", phase(value.plan, "service-stop").status)
  end)

  it("says so while the script still loads", function()
    app(function() tide.sleep(5) end)
    assert.matches("the script is still loading", steer:run("drain", { dry = true }).text)
  end)
end)

describe("drain { reason = ... }", function()
  after_each(function() steer:finish() end)

  it("begins the shutdown with the reason console, which says who and why", function()
    app(function() end)
    local value = steer:run("drain", { reason = "deploy of 1.2" })
    assert.is_true(value.started)
    assert.matches("^the shutdown has begun: ", value.text)
    assert.equal("console", tide.shutdown.reason.kind)
    assert.equal("console (from pid 4711 deploy of 1.2)", tostring(tide.shutdown.reason))
    assert.same({ { action = "drain", text = "deploy of 1.2" } }, steer.audited)
    life:turn()
    assert.equal(0, life.code)
  end)

  it("is recorded beside the reason of a shutdown that runs", function()
    app(function()
      tide.shutdown:task("service-stop", "flush", function() tide.sleep(4) end)
    end)
    life:signal "SIGTERM"
    life:advance(2)
    assert.matches("a shutdown was under way for 2s already, process%-terminate",
      steer:run("drain", { reason = "deploy" }).text)
    assert.equal("console", tide.shutdown.later[1].kind)
    life:advance(3)
    assert.equal(0, life.code)
  end)

  it("refuses what is not clearly the one or the other, and does nothing", function()
    app(function() end)
    for _, case in ipairs {
      { nil, "a table is wanted: drain { reason" }, { "dry", "a table is wanted" },
      { {}, "a reason is wanted" }, { { reason = "" }, "a reason is wanted" },
      { { dry = false }, "a reason is wanted" }, { { dry = 1, reason = "x" }, "dry is true or" },
      { { reason = "x", dri = true }, "unknown option \"dri\"; did you mean \"dry\"" },
    } do
      assert.matches(case[2], steer:refused("drain", case[1]))
    end
    assert.equal("ready", life.state)
    assert.same({}, steer.audited)
  end)

  it("is refused where one may only look", function()
    app(function() end)
    steer.session.policy = "inspect"
    assert.matches("the policy is inspect", steer:refused("drain", { reason = "deploy" }))
    assert.matches("^dry run", steer:run("drain", { dry = true }).text)
    assert.equal("ready", life.state)
    assert.same({}, steer.audited)
  end)

  it("answers the request of a client in the same words", function()
    app(function() end)
    local got = {}
    local reply = {
      value = function(_, fields) got.value = fields end,
      refuse = function(_, message, status) got.message, got.status = message, status end,
      done = function(_, status) got.status = status or "ok" end,
    }
    local steering_room = require "moontide.console.steer"
    steering_room.request(steer.session, {}, reply)
    assert.equal("error", got.status)
    assert.matches("a reason is wanted", got.message)
    steering_room.request(steer.session, { dry = true }, reply)
    assert.equal("ok", got.status)
    assert.equal(13, #got.value.plan.phases)
    tide.shutdown:run(tide.reason.new("admin", { text = "\27[2J" }))
    steering_room.request(steer.session, { reason = "deploy" }, reply)
    assert.equal("draining", life.state)
    assert.matches("admin %(%?%[2J%)", got.value.text)
    assert.equal("admin (?[2J)", got.value.plan.reason)
  end)
end)
