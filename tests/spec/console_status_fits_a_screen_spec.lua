-- The status is readable in one screen of 80 columns and 24 lines, whatever there is to say, and is
-- shown alike by who collected it and by who was sent it.
local inspecting = require "support.inspecting"
local lifecycle = require "support.lifecycle"

-- Of the present lifecycle, which loads the library anew.
local json, screen

local function load_library()
  json, screen = require "moontide.json", require "moontide.console.status.screen"
end

local function assert_fits(text)
  local lines = 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    lines = lines + 1
    local plain = line:gsub("\27%[%d+m", "")
    assert.is_true(utf8.len(plain) <= 80, "too wide: " .. plain)
    assert.is_nil(plain:find "[%c]")
  end
  assert.is_true(lines <= 24, lines .. " lines")
end

-- More of everything than fits.
local function crowded()
  local long = ("word "):rep(60)
  local s = {
    name = ("n"):rep(200), pid = 4194304, version = "0.1.0", mode = "process", state = "draining",
    since = 1.7e9, state_seconds = 123456.7, uptime = 1e8, ready = false, probes = "not_ready",
    reason = { kind = "process-terminate", text = long, signal = "SIGTERM", pid = 1, uid = 0,
      program = ("p"):rep(15) },
    pipeline = { kind = "shutdown", total = 40, used = 39.5, left = 0.5 },
    phases = json.array {}, waiting_for = json.array {}, checks = json.array {},
    in_flight = { active = 7, kinds = json.array {} }, listeners = json.array {},
    tasks = { live = 200000, ready = 100000, waiting = 100000 },
    loop_lag = { now = 0.0004, looks = 3, last = 0.002, max = 12.5 },
    memory = { lua = 123456789, resident = 9876543210 }, log_dropped = 123456, sessions = 8,
  }
  for i = 1, 20 do
    s.phases[i] = { pipeline = "shutdown", name = long, budget = 30, used = 12, slack = -3,
      running = json.array {} }
    s.waiting_for[i] = long
    s.checks[i] = { name = "check " .. i .. long, kind = "check", state = "not ok", ok = i % 2 == 0,
      critical = i % 3 == 0, message = long .. "\27[31m\n", age = 12, latency = 0.1, every = 5 }
    s.listeners[i] = { name = long, address = "127.0.0.1:" .. i, connections = 9, busy = 3,
      in_flight = 2 }
    s.in_flight.kinds[i] = { name = long, active = 3, total = 4 }
  end
  return s
end

describe("the status", function()
  before_each(load_library)

  it("fits a screen when there is more to say than fits", function()
    local text = screen.text(crowded())
    assert_fits(text)
    assert.matches("\n  … %d+ more", text)
    assert_fits(screen.text(crowded(), { color = true }))
  end)

  it("fits a screen when there is nothing to say", function()
    local life = lifecycle.new(function(_, world) world.alive = true end)
    load_library()
    life:advance(1)
    local data, text = inspecting.ask(life, "status")
    assert_fits(text)
    assert.matches("^test ready\n  pid %d+, moontide [%d.]+, up .-, ready for 1%.%d s\n", text)
    for _, key in ipairs { "phases", "waiting_for", "checks", "listeners" } do
      assert.equal("[]", json.encode(data[key]))
    end
    assert.equal(json.null, data.reason)
  end)

  it("says the same of what was sent as of what was collected", function()
    local life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.check("db", function() return false, "refused" end)
      tide.shutdown:task("service-stop", "slow", function() tide.sleep(5) end)
    end)
    load_library()
    life:advance(1)
    life:signal("SIGTERM", 4711)
    life:advance(1)
    local data, text = inspecting.ask(life, "status")
    local sent = json.decode(json.encode(data))
    assert.equal(text, screen.text(sent))
    assert.matches("shuts down: process%-terminate %(SIGTERM from pid 4711%)", text)
    assert.matches("\nshutdown: 1%.%d s of 40.0 s, left 3%d%.%d s\n", text)
    assert.matches("\n  phase service%-stop: 1%.%d s of 5.0 s, slack 4%.%d s\n", text)
    assert.matches("\n  db not ok, 2%.%d s ago: refused\n", text)
  end)

  it("says how late the loop is now, and was since somebody asked", function()
    local s = crowded()
    assert.matches("\nloop lag 0.4 ms, at most 12.5 s, log", screen.text(s))
    s.loop_lag = { now = 0.0004, looks = 0, last = json.null, max = 0 }
    assert.matches("\nloop lag 0.4 ms, log", screen.text(s))
    s.loop_lag.now = json.null
    assert.matches("\nloop lag not looked at, log", screen.text(s))
  end)

  it("has colours only when they are asked for", function()
    assert.is_nil(screen.text(crowded()):find "\27")
    assert.is_not_nil(screen.text(crowded(), { color = true }):find "\27%[33mdraining\27%[0m")
  end)

  it("shows checks that are not ok before the others", function()
    local s = crowded()
    s.checks = json.array {
      { name = "fine", state = "ok", ok = true, critical = true, message = json.null,
        age = json.null },
      { name = "bad", state = "not ok", ok = false, critical = true, message = "no", age = 1 },
    }
    local text = screen.text(s)
    assert.is_true(text:find("bad not ok", 1, true) < text:find("fine ok", 1, true))
  end)
end)
