-- The "watch" cases of the data file: shutdown tasks that wait for something to be gone. Here such
-- a component is a task of the root scope, and waiting for it is joining it.
local data = require "support.pipeline_data"
local lifecycle = require "support.lifecycle"

-- An app with a component that ends half a second after it is told to (or by itself).
local function app(register)
  local case = { told = 0 }
  case.life = lifecycle.new(function(tide)
    local stop = tide.event "stop"
    case.component = tide.spawn(function()
      stop:wait()
      tide.sleep(0.5)
      case.gone_at = tide.now()
    end)
    function case.tell()
      case.told = case.told + 1
      stop:set(true)
    end
    register(case, tide)
  end)
  return case
end

local function waiting(case, tide, phase, name, tell)
  tide.shutdown:task(phase, name, function()
    if tell then case.tell() end
    case.component:join()
    case[name] = tide.now()
  end)
end

local checks = {}

function checks.W01()
  local case = app(function(case, tide) waiting(case, tide, "service-stop", "wait", true) end)
  case.life:signal "SIGTERM"
  case.life:advance(0.1)
  assert.is_nil(case.life.code)
  case.life:advance(0.5)
  assert.equal(0, case.life.code)
  assert.equal(case.gone_at, case.wait)
end

function checks.W02()
  local case = app(function(case, tide) waiting(case, tide, "service-stop", "wait") end)
  case.life:signal "SIGTERM"
  case.life:advance(1)
  assert.is_nil(case.life.code)
  assert.equal(0, case.told)
  case.tell()
  case.life:advance(1)
  assert.equal(0, case.life.code)
end

function checks.W03()
  local case = app(function(case, tide)
    waiting(case, tide, "service-stop", "wait")
    tide.root:spawn(function() tide.sleep(60) end)
  end)
  case.tell()
  case.life:advance(1)
  case.life:signal "SIGTERM"
  assert.is_number(case.wait)
  assert.equal(0, case.life.code)
end

function checks.W04()
  local case = app(function(case, tide)
    waiting(case, tide, "service-stop", "one", true)
    waiting(case, tide, "service-stop", "two", true)
  end)
  case.life:signal "SIGTERM"
  case.life:advance(1)
  assert.equal(2, case.told)
  assert.equal(case.gone_at, case.one)
  assert.equal(case.gone_at, case.two)
end

function checks.W05()
  local case = app(function(case, tide)
    waiting(case, tide, "service-stop", "one", true)
    waiting(case, tide, "before-actor-system-terminate", "two")
  end)
  case.life:signal "SIGTERM"
  case.life:advance(1)
  assert.equal(case.one, case.two)
  assert.equal(0, case.life.code)
end

describe("watch case", function()
  for _, case in ipairs(data.section "watch") do
    it(("%s: %s"):format(case.id, case.title), function() checks[case.id]() end)
  end
end)

describe("a component that stopped by itself", function()
  it("is not stopped again", function()
    local stops, component = 0, nil
    local life = lifecycle.new(function(tide, world)
      world.alive = true
      component = tide.component("db", { stop = function() stops = stops + 1 end })
    end)
    component:stopped()
    life:signal "SIGTERM"
    assert.equal(0, stops)
    assert.equal(0, life.code)
    assert.equal("ok", life.tide.shutdown.tasks["shutdown-hooks"].by_name.db.outcome)
  end)
end)
