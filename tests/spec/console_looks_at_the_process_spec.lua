-- What one asks about the process itself: settings, memory, the loop, timers, handles, connections,
-- work in flight.
local inspecting = require "support.inspecting"
local lifecycle = require "support.lifecycle"

local life, tide

local function app(main)
  life = lifecycle.new(function(library, world)
    tide = library
    world.alive = true
    if main then main(library) end
  end)
  life:advance(1)
end

describe("config()", function()
  after_each(function() inspecting.finish(life) end)

  it("shows what each setting is and where it comes from, secrets masked", function()
    app(function() tide.config { shutdown = { linger = "2s" }, manage = { token = "hush" } } end)
    local data, text = inspecting.ask(life, "config")
    local linger = inspecting.find(data.settings, { key = "shutdown.linger" })
    assert.equal("2s", linger.value)
    assert.matches("^config .-console_looks_at_the_process_spec.lua:%d+$", linger.origin)
    local drain = inspecting.find(data.settings, { key = "shutdown.drain" })
    assert.same({ "30s", "default" }, { drain.value, drain.origin })
    assert.equal("********", inspecting.find(data.settings, { key = "manage.token" }).value)
    assert.is_nil(text:find "hush")
  end)

  it("shows one setting, or a group, and knows the nearest name", function()
    app()
    assert.equal(1, #inspecting.ask(life, "config", "shutdown.linger").settings)
    local group = inspecting.ask(life, "config", "timeouts").settings
    assert.is_true(#group > 5)
    for _, row in ipairs(group) do assert.matches("^timeouts%.", row.key) end
    assert.matches("did you mean \"shutdown%.linger\"%?",
      inspecting.refused(life, "config", "shutdown.lingr"))
    assert.matches("name of a setting", inspecting.refused(life, "config", 3))
  end)
end)

describe("timers()", function()
  after_each(function() inspecting.finish(life) end)

  it("shows what is due next, the soonest first", function()
    app(function()
      for _, seconds in ipairs { 30, 10, 20 } do
        tide.root:start({ name = "nap " .. seconds }, function() tide.sleep(seconds) end)
      end
      tide.root:start({ name = "limited", timeout = "15s" }, function()
        tide.event("never"):wait()
      end)
    end)
    local data, text = inspecting.ask(life, "timers")
    local names = {}
    for _, row in ipairs(data.timers) do
      if row.name ~= "control socket" then names[#names + 1] = row.name .. " " .. row.kind end
    end
    assert.same({ "nap 10 sleep", "limited deadline", "nap 20 sleep", "nap 30 sleep" }, names)
    assert.is_true(math.abs(data.timers[1].due - 9) < 0.1)
    assert.equal(3, data.counts.sleeps)
    assert.matches("^3 tasks sleep, 1 task with a deadline, 0 luv timers", text)
  end)

  it("keeps to the soonest of many", function()
    app(function()
      for i = 1, 2000 do tide.root:spawn(function() tide.sleep(10 + (i * 7919) % 2000) end) end
    end)
    local data, text = inspecting.ask(life, "timers", { max = 5 })
    assert.equal(5, #data.timers)
    for i = 1, 5 do assert.is_true(math.abs(data.timers[i].due - (8 + i)) < 0.2) end
    assert.matches("… 1995 more$", text)
  end)
end)

describe("loop()", function()
  after_each(function() inspecting.finish(life) end)

  it("looks at once, and once a second from then on", function()
    app()
    local data = inspecting.ask(life, "loop")
    assert.same({ 5, 0 }, { data.now.looks, data.count })
    life:advance(10)
    local later, text = inspecting.ask(life, "loop")
    assert.is_true(later.count >= 9 and later.count <= 11)
    local sum = 0
    for _, bucket in ipairs(later.buckets) do sum = sum + bucket.count end
    assert.equal(later.count, sum)
    assert.matches("\nup to 1 ms +%d+ +#+\n", text)
  end)
end)

describe("mem()", function()
  after_each(function() inspecting.finish(life) end)

  it("shows Lua's memory, its collector, and the process's", function()
    app()
    local data, text = inspecting.ask(life, "mem")
    assert.is_true(data.lua > 100000 and data.resident > data.lua / 10)
    assert.is_true(data.running)
    assert.equal("Lua's or the script's choice", data.collector)
    assert.matches("\nLua +%d+%.%d [kM]B", text)
    collectgarbage "stop"
    text = select(2, inspecting.ask(life, "mem"))
    collectgarbage "restart"
    assert.matches("collector: .-, stopped\n", text)
  end)
end)

describe("handles()", function()
  after_each(function() inspecting.finish(life) end)

  it("does not load luv by asking", function()
    app()
    package.loaded["moontide.uv"] = nil
    local data, text = inspecting.ask(life, "handles")
    assert.is_false(data.luv)
    assert.equal("no handles: no script has loaded luv", text)
    assert.is_nil(package.loaded["moontide.uv"])
  end)

  it("groups them by the line that made them", function()
    app()
    local handles = {}
    for i = 1, 5 do
      handles[i] = { site = "app.lua:" .. (i <= 3 and 7 or 9), type = "timer", active = i ~= 1 }
    end
    package.loaded["moontide.uv"] = { handles = function() return handles end }
    local data, text = inspecting.ask(life, "handles")
    package.loaded["moontide.uv"] = nil
    assert.same({ 5, 2 }, { data.total, data.found })
    assert.same({ site = "app.lua:7", type = "timer", open = 3, active = 2 }, data.sites[1])
    assert.matches("\n +3 +2 +timer +app.lua:7\n", text)
  end)
end)

describe("work()", function()
  after_each(function() inspecting.finish(life) end)

  it("counts what is in flight by kind", function()
    app()
    local source = require("moontide.core.work").source "jobs:api POST /export"
    source:begin()
    source:begin()
    source:done()
    local data, text = inspecting.ask(life, "work")
    local kind = inspecting.find(data.kinds, { name = "jobs:api POST /export" })
    assert.same({ 1, 2 }, { kind.active, kind.total })
    assert.matches("^%d+ in flight\n", text)
    source:done()
  end)
end)

describe("conns()", function()
  after_each(function() inspecting.finish(life) end)

  it("says that there are no listeners", function()
    app()
    local data, text = inspecting.ask(life, "conns")
    assert.equal("no listeners", text)
    assert.equal("[]", require("moontide.json").encode(data.listeners))
    assert.matches("unknown listener \"api\"; there are none",
      inspecting.refused(life, "conns", { listener = "api" }))
  end)
end)
