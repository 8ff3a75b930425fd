-- Whatever is skipped and extended, and whenever: the shutdown ends in time, once, each task has
-- its outcome, and nothing is left. On random pipelines, the same for the same seed.
local lifecycle = require "support.lifecycle"
local steering = require "support.steering"

local RUNS, STEPS, TOTAL = 60, 12, 20

local life, steer, tide

-- A task that takes its time, defends itself, fails, or waits for what it has started.
local function body(random)
  local seconds, how = random(0, 80) / 10, random(1, 6)
  return function()
    if how == 1 then
      pcall(tide.sleep, seconds)
    elseif how == 2 then
      tide.shield(2, function() tide.sleep(seconds) end)
    elseif how == 3 then
      tide.sleep(seconds / 4)
      error "it fails"
    elseif how == 4 then
      tide.spawn(function() tide.sleep(seconds) end)
    else
      tide.sleep(seconds)
    end
  end
end

local function register(random)
  local phases = tide.shutdown.names
  for i = 1, random(1, 14) do
    local phase = phases[random(1, #phases - 1)]
    local opts = {}
    if random(1, 4) == 1 then opts.timeout = random(1, 60) / 10 end
    if i > 1 and random(1, 3) == 1 then opts.after = "t" .. random(1, i - 1) end
    local same_phase = opts.after and tide.shutdown.tasks[phase].by_name[opts.after]
    if not same_phase then opts.after = nil end
    tide.shutdown:task(phase, "t" .. i, opts, body(random))
  end
  for i = 1, random(0, 3) do tide.shutdown:on("hook" .. i, body(random)) end
end

local function new(random)
  life = lifecycle.new(function(library, world)
    tide, world.alive = library, true
    tide.config { shutdown = { timeout = TOTAL, parallel = random(1, 3) == 1, linger = 0 } }
    register(random)
  end)
  steer = steering.new(life)
end

-- One step: it may be refused, with a sentence, and nothing else.
local function step(random)
  local phases = tide.shutdown.names
  local t
  if random(1, 2) == 1 then
    local name = random(1, 3) == 1 and phases[random(1, #phases)] or "t" .. random(1, 14)
    t = steer:start("skip", name, "a test")
  else
    t = steer:start("extend", phases[random(1, #phases)], random(1, 60) / 10, "a test")
  end
  assert(t.outcome == "ok" or t.outcome == "failed", "the command has not ended")
  if t.outcome == "failed" then
    assert(type(t.error) == "string" and not t.error:find "%.lua:%d", tostring(t.error))
  end
end

local function check_tasks()
  for _, phase in ipairs(tide.shutdown.names) do
    for entry in tide.shutdown.tasks[phase]:each() do
      local fine = entry.outcome or tide.shutdown.tasks[phase].status == "skipped"
      assert(fine, ("%s/%s has no outcome"):format(phase, entry.name))
      assert(entry.state ~= "running", entry.name .. " still runs")
    end
  end
end

describe("a shutdown that is steered", function()
  for seed = 1, RUNS do
    it("ends in time with seed " .. seed, function()
      math.randomseed(seed)
      local random = math.random
      new(random)
      local from = tide.now()
      life:signal "SIGTERM"
      for _ = 1, STEPS do
        if life.code then break end
        step(random)
        life:advance(random(0, 15) / 10)
      end
      life:advance(math.max(0, TOTAL + 0.1 - (tide.now() - from)))
      assert.is_truthy(life.code)
      assert.equal(1, life.stops)
      check_tasks()
      assert.same({}, life:logged { level = "error", message = "inside the host" })
      assert.same({}, life:logged { level = "error", message = "uncaught" })
      steer:finish()
    end)
  end
end)
