-- Every "config" case of the data file; what is adapted says so there.
require("support.paths")
local config = require("moontide.config")
local data = require("support.pipeline_data")
local graph = require("moontide.pipeline.graph")
local lifecycle = require("support.lifecycle")
local reasons = require("moontide.reason")

local cases = {}

--- Settings of the data file -> those of moontide.
local function settings_of(input)
  return {
    shutdown = {
      default_phase_timeout = input.default_timeout, phases = input.phases,
      terminate_host = input.terminate_system, run_by_terminate = input.run_by_terminate,
      auto_register_tasks = input.auto_register,
    },
  }
end

local function errors_of(input)
  config.reset()
  config.set(settings_of(input), "app.lua:1")
  local errors = config.seal()
  config.reset()
  return errors
end

function cases.C01(case)
  config.reset()
  config.set(settings_of(case["in"]), "app.lua:1")
  assert.same({}, config.seal())
  local g = graph.new({ kind = "shutdown" })
  for _, name in ipairs({ "a", "b", "c" }) do g:phase(name) end
  g:configure(config)
  assert.is_nil(g:seal())
  local report = require("moontide.pipeline.budget").compute(g, config)
  config.reset()
  for name, expected in pairs(case.expect) do
    local node = g:get(name)
    assert.same(expected.after, node.after)
    assert.equal(expected.timeout_ms, report.by_name[name].timeout * 1000)
    assert.equal(expected.recover, node.recover)
    assert.equal(expected.enabled, node.enabled)
  end
end

function cases.C02(case)
  assert.equal(case.expect.exit, reasons.new("process-terminate").exit_code)
end

function cases.C03()
  assert.equal(1, reasons.new("cluster-downing").exit_code)
end

function cases.C04()
  assert.equal(1, reasons.new("startup-failed").exit_code)
end

function cases.C05(case)
  config.reset()
  config.set({ shutdown = { reasons = {
    ["cluster-downing"] = { exit_code = case.expect.downed },
    ["startup-failed"] = { exit_code = case.expect.join_failed },
  } } }, "app.lua:1")
  assert.same({}, config.seal())
  assert.same({
    ["cluster-downing"] = { exit_code = 3 }, ["startup-failed"] = { exit_code = 4 },
  }, config.named("shutdown.reasons"))
  config.reset()
  assert.equal(case.expect.clean, reasons.new("process-terminate").exit_code)
end

--- A lifecycle with the settings of the case and one task.
local function life_of(input, body)
  local ran = 0
  local life = lifecycle.new(function(tide)
    tide.config(settings_of(input))
    tide.shutdown:task("service-stop", "work", function() ran = ran + 1 end)
    if body then body(tide) end
    tide.root:spawn(function() require("moontide.task").waiter("the end"):wait() end)
  end)
  return life, function() return ran end
end

function cases.C06(case)
  local life = life_of(case["in"])
  assert.equal(78, life.code)
  local found = life:logged({ level = "error" })[1].message
  assert.matches("shutdown.terminate_host false", found, 1, true)
end

function cases.C07(case)
  local life, ran = life_of(case["in"])
  life.tide.terminate()
  life:advance(5)
  assert.equal("stopped", life.state)
  assert.equal(0, life.code)
  assert.equal(case.expect.tasks_run, ran())
end

function cases.C08(case)
  local life, ran = life_of(case["in"])
  life.tide.terminate()
  life:advance(5)
  assert.equal("stopped", life.state)
  assert.equal("actor-system-terminate", life.tide.shutdown.reason.kind)
  assert.equal(1, ran())
end

function cases.C10()
  local life, ran = life_of({})
  local first = life.tide.shutdown:run("admin")
  life:advance(5)
  assert.equal("stopped", life.state)
  assert.equal(first, life.tide.shutdown:run("console"))
  assert.is_true(life.tide.shutdown:is_complete())
  assert.equal("admin", life.tide.shutdown.reason.kind)
  assert.equal(1, ran())
end

function cases.C11(case)
  assert.matches(case.expect_error, errors_of(case["in"])[1], 1, true)
end

function cases.C12(case)
  local message = errors_of(case["in"])[1]:gsub("\"", "")
  assert.matches(case.expect_error, message, 1, true)
end

function cases.C13()
  local life, ran = life_of({ auto_register = false }, function(tide)
    tide.worker("outbox", { every = "1s" }, function() end)
  end)
  life.tide.shutdown:run("admin")
  life:advance(60)
  local names = {}
  for _, phase in ipairs({ "before-service-unbind", "service-stop", "actor-system-terminate" }) do
    for entry in life.tide.shutdown.tasks[phase]:each() do names[#names + 1] = entry.name end
  end
  assert.same({ "work", "terminate" }, names)
  assert.equal("stopped", life.state)
  assert.equal(1, ran())
end

describe("config case", function()
  for _, case in ipairs(data.section("config")) do
    it(case.id .. " " .. (case.title or "") .. " (" .. case.status .. ")", function()
      assert.is_true(case.status == "run" or type(case.why) == "string")
      if case.status ~= "skipped" then cases[case.id](case) end
    end)
  end
end)
