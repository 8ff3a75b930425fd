require("support.paths")
local budget = require("moontide.pipeline.budget")
local config = require("moontide.config")
local graph = require("moontide.pipeline.graph")
local graphs = require("support.graphs")
local illegal = require("moontide.illegal")
local retry = require("moontide.retry")

--- What the table says of these settings and phases.
local function check(case)
  config.reset()
  config.set(case.config or {}, "app.lua:1")
  config.load_env(case.env or {})
  assert.same({}, config.seal())
  local startup = graphs.declare(graph.new({ kind = "startup" }), case.startup or {})
  local shutdown = graphs.declare(graphs.shutdown(), case.shutdown or {})
  local subject = {
    config = config, startup = startup, shutdown = shutdown, budgets = {},
    exits = case.exits, kubernetes = case.kubernetes,
  }
  for _, g in ipairs({ startup, shutdown }) do
    g:configure(config)
    assert.is_nil(g:seal())
    subject.budgets[g.kind] = budget.compute(g, config, { workers = case.workers })
  end
  return illegal.check(subject)
end

local function settings(tbl)
  return { shutdown = tbl }
end

after_each(config.reset)

describe("an illegal combination", function()
  local cases = {
    { "run_by_terminate without terminate_host", "set shutdown.run_by_terminate to false as well",
      config = settings({ terminate_host = false }) },
    { "a linger as long as the total", "leaves nothing of shutdown.timeout 5s",
      config = settings({ timeout = 5, linger = 5, phases = {
        ["before-service-unbind"] = { timeout = 5 } } }), also = 1 },
    { "a control socket whose path is too long", "a Unix socket has at most 107",
      config = { control = { dir = "/" .. ("x"):rep(100) } } },
    { "other users of the console and nowhere to let them in", "console.uids (environment "
      .. "MOONTIDE_CONSOLE__UIDS) needs control.dir", env = { MOONTIDE_CONSOLE__UIDS = "1000" } },
    { "a linger longer than its phase",
      "timeout 3s (config app.lua:1) is shorter than shutdown.linger 3s + 1s = 4s (default)",
      config = settings({ phases = { ["before-service-unbind"] = { timeout = 3 } } }) },
    { "a drain longer than its phase", "is shorter than shutdown.drain 20s + 2s = 22s",
      config = settings({ drain = 20, phases = {
        ["service-requests-done"] = { timeout = 21 } } }) },
    { "a worker's drain longer than its phase", "shorter than drain 9s of worker \"outbox\" + 1s",
      config = settings({ phases = { ["service-stop"] = { timeout = 9 } } }),
      workers = { { name = "outbox", drain = 9 } } },
    { "an inner drain longer than the terminal phase",
      "is shorter than shutdown.terminate_drain 4s + 3s = 7s",
      config = settings({ terminate_drain = 4, phases = {
        ["actor-system-terminate"] = { timeout = 5 } } }) },
    { "a phase longer than the total", "timeout 50s (call app.lua:1) is longer than the shutdown"
      .. " total of 40s (default)",
      shutdown = { { "x", { after = "service-stop", timeout = 50 } } } },
    { "a startup phase longer than the total",
      "longer than the startup total of 10s (environment MOONTIDE_STARTUP_TIMEOUT)",
      env = { MOONTIDE_STARTUP_TIMEOUT = "10" }, startup = { { "db", { timeout = 11 } } } },
    { "recover = false on the terminal phase", "cannot have recover = false",
      config = settings({ phases = { ["actor-system-terminate"] = { recover = false } } }) },
    { "a disabled terminal phase", "cannot be disabled",
      config = settings({ phases = { ["actor-system-terminate"] = { enabled = false } } }) },
    { "a watchdog that exits a process that is to stay", "the watchdog of this process exits",
      config = settings({ exit_process = false }), exits = true },
    { "an unknown reason", "unknown reason \"admn\"; did you mean \"admin\"?",
      config = settings({ reasons = { admn = { exit_code = 1 } } }) },
    { "an unknown phase to skip", "did you mean \"cluster-leave\"?",
      config = settings({ reasons = { admin = { skip = { "cluster-leav" } } } }) },
    { "the terminal phase to skip", "cannot be skipped",
      config = settings({ reasons = { admin = { skip = { "actor-system-terminate" } } } }) },
  }
  for _, case in ipairs(cases) do
    it("is refused: " .. case[1], function()
      local errors = check(case)
      assert.equal(1 + (case.also or 0), #errors, table.concat(errors, "\n"))
      assert.matches(case[2], errors[1], 1, true)
    end)
  end
end)

describe("a doubtful combination", function()
  local patient = retry({ give_up_after = "5m" })
  local cases = {
    { "a drain longer than the total", "has to hold shutdown.drain 50s + 2s = 52s",
      config = settings({ drain = 50 }) },
    { "a retry longer than the startup total", "may take 5m, but the startup total is 2m",
      startup = { { "db", { timeout = 5, on_fail = patient } } } },
    { "a retry that one attempt may use up", "one attempt may take all of that",
      startup = { { "db", { timeout = 5, on_fail = retry({ give_up_after = 5 }) } } } },
    { "a pod without a grace period", "in Kubernetes without shutdown.grace", kubernetes = true,
      config = { manage = { host = "0.0.0.0" } } },
    { "a pod whose probes cannot reach it", "MOONTIDE_MANAGE__HOST=0.0.0.0", kubernetes = true,
      config = settings({ grace = 60 }) },
    { "a preStop without a grace period", "counts only together with shutdown.grace",
      config = settings({ prestop = 5 }) },
  }
  for _, case in ipairs(cases) do
    it("is a warning: " .. case[1], function()
      local errors, warnings = check(case)
      assert.same({}, errors)
      assert.equal(1, #warnings)
      assert.matches(case[2], warnings[1], 1, true)
    end)
  end
end)

describe("a default", function()
  it("is never held against anybody", function()
    local errors, warnings = check({})
    assert.same({ {}, {} }, { errors, warnings })
    errors = check({ config = settings({ timeout = 1 }) })
    assert.same({}, errors)
    errors = check({ config = { startup = { timeout = 1 } }, startup = { { "db" } } })
    assert.same({}, errors)
  end)

  it("that is chosen together with what it depends on is legal", function()
    local errors = check({ config = settings({
      terminate_host = false, run_by_terminate = false, exit_process = false,
    }) })
    assert.same({}, errors)
  end)
end)
