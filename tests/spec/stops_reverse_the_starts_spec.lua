-- For every need, the stop of the dependent ends before the stop of what it needs begins: in
-- whatever order the starts finished, with hooks and in a phase of their own.
local lifecycle = require "support.lifecycle"

-- Random components, each needing some of those before it; stops take a while.
local function run(seed, count, stop_phase)
  math.randomseed(seed)
  local needs, began, ended = {}, {}, {}
  local life = lifecycle.new(function(tide, world)
    world.alive = true
    tide.config { startup = { parallel = true } }
    for i = 1, count do
      needs[i] = {}
      for j = 1, i - 1 do
        if math.random() < 0.4 then needs[i][#needs[i] + 1] = "c" .. j end
      end
      local start, stop = math.random() * 0.5, math.random() * 0.1
      tide.component("c" .. i, {
        needs = needs[i], stop_phase = stop_phase,
        start = function() tide.sleep(start) end,
        stop = function()
          began["c" .. i] = tide.now()
          tide.sleep(stop)
          ended["c" .. i] = tide.now()
        end,
      })
    end
  end)
  life:advance(20)
  assert.equal("ready", life.state)
  life:signal "SIGTERM"
  life:advance(20)
  assert.equal(0, life.code)
  for i = 1, count do
    for _, need in ipairs(needs[i]) do
      assert.is_true(ended["c" .. i] <= began[need], ("seed %d: c%d, %s"):format(seed, i, need))
    end
  end
end

describe("stops", function()
  it("run in reverse order of the finished starts", function()
    for seed = 1, 20 do run(seed, 8, nil) end
  end)

  it("do so in a stop phase of their own, too", function()
    for seed = 1, 20 do run(seed, 8, "before-actor-system-terminate") end
  end)

  it("are refused in a phase after that of what the component needs", function()
    local life = lifecycle.new(function(tide)
      tide.component("db", { stop_phase = "service-stop" })
      tide.component("cache", { needs = "db" })
    end)
    assert.equal(78, life.code)
    assert.matches("component \"cache\" stops in phase shutdown%-hooks, after \"db\"",
      life:logged { level = "error" }[1].message)
  end)

  it("are refused in a phase that does not exist", function()
    local life = lifecycle.new(function(tide)
      tide.component("db", { stop_phase = "servce-stop" })
    end)
    assert.equal(78, life.code)
    assert.matches("did you mean \"service%-stop\"", life:logged { level = "error" }[1].message)
  end)
end)
