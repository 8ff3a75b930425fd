require("support.paths")
local budget = require("moontide.pipeline.budget")
local config = require("moontide.config")
local fit = require("moontide.pipeline.fit")
local graph = require("moontide.pipeline.graph")
local graphs = require("support.graphs")
local phases = require("moontide.pipeline.phases")
local retry = require("moontide.retry")

--- The report of a shutdown with these settings.
local function shutdown(settings, extras, rows)
  config.reset()
  config.set({ shutdown = settings or {} }, "app.lua:1")
  assert.same({}, config.seal())
  local g = graphs.declare(graphs.shutdown(), rows or {})
  g:builtin(phases.hooks.name, phases.hooks.opts)
  g:configure(config)
  assert.is_nil(g:seal())
  return budget.compute(g, config, extras), g
end

local function startup(rows, settings)
  config.reset()
  config.set({ startup = settings or {} }, "app.lua:1")
  assert.same({}, config.seal())
  local g = graphs.declare(graph.new({ kind = "startup" }), rows)
  g:configure(config)
  assert.is_nil(g:seal())
  return budget.compute(g, config), g
end

local function phase(report, name)
  local b = report.by_name[name]
  return ("%g %s"):format(b.timeout, b.origin)
end

after_each(config.reset)

describe("the budget of a phase", function()
  it("is its own, a setting, or the default, and says which", function()
    local report = shutdown({
      default_phase_timeout = 4, phases = { ["cluster-leave"] = { timeout = 7 } },
    }, nil, { { "x", { after = "service-stop", timeout = 3 } }, { "y", "x" } })
    assert.equal("3 call app.lua:1", phase(report, "x"))
    assert.equal("4 config app.lua:1", phase(report, "y"))
    assert.equal("7 config app.lua:1", phase(report, "cluster-leave"))
    assert.equal("5 default", phase(report, "service-unbind"))
    config.reset()
    assert.equal("30 default", phase(startup({ { "db" } }), "db"))
  end)

  it("grows with what has to happen in it", function()
    local report = shutdown({ linger = 10, drain = 20, terminate_drain = 8 }, {
      workers = { { name = "a", drain = 2 }, { name = "outbox", drain = 9, site = "app.lua:5" } },
    })
    assert.equal("11 shutdown.linger 10s + 1s (config app.lua:1)",
      phase(report, "before-service-unbind"))
    assert.equal("30 default", phase(report, "service-requests-done"))
    assert.equal("10 drain 9s of worker \"outbox\" + 1s (app.lua:5)", phase(report, "service-stop"))
    assert.equal("11 shutdown.terminate_drain 8s + 3s (config app.lua:1)",
      phase(report, "actor-system-terminate"))
    assert.equal("32 shutdown.drain 30s + 2s (default)", phase(shutdown(), "service-requests-done"))
  end)

  it("is clipped to the total when nobody chose it", function()
    local report = shutdown({ timeout = 8 })
    assert.equal("8 shutdown.drain 30s + 2s (default), clipped to the total",
      phase(report, "service-requests-done"))
    assert.equal(32, report.by_name["service-requests-done"].wanted)
  end)

  it("is what the total leaves for \"none\" and the hooks", function()
    local report = shutdown(nil, nil, { { "x", { after = "service-stop", timeout = "none" } } })
    assert.equal("40 none: what the total leaves (call app.lua:1)", phase(report, "x"))
    assert.is_true(report.by_name["shutdown-hooks"].unbounded)
  end)
end)

describe("the worst case", function()
  it("is the sum of the phases, and above the total on purpose", function()
    local report = shutdown()
    assert.equal(5 + 5 + 32 + 5 + 5 + 10 + 5 + 10 + 5 + 5 + 5 + 10, report.worst_case)
    assert.equal(40, report.total)
    assert.equal("default", report.total_origin)
  end)

  it("leaves out what is disabled or has only what others leave", function()
    local full = shutdown().worst_case
    local report = shutdown({ phases = { ["cluster-leave"] = { enabled = false } } })
    assert.equal(full - 5, report.worst_case)
  end)

  it("counts the retries of a phase, up to the total", function()
    assert.equal(2 + 1 + 2 + 2 + 2, startup({
      { "db", { timeout = 2, on_fail = retry({ base = 1, attempts = 3 }) } },
    }).worst_case)
    assert.equal(120, startup({ { "db", { on_fail = retry({}) } } }).worst_case)
  end)

  it("of a parallel pipeline is its critical path", function()
    local rows = {
      { "a", { timeout = 3 } }, { "b", { timeout = 9 } },
      { "c", { after = "a", timeout = 4 } }, { "d", { after = { "c", "b" }, timeout = 1 } },
    }
    local report, g = startup(rows)
    assert.equal(17, report.worst_case)
    assert.same({ names = { "b", "d" }, seconds = 10 }, fit.critical_path(g, report))
    assert.equal(10, startup(rows, { parallel = true }).worst_case)
  end)
end)

describe("the critical path", function()
  it("of a shutdown goes through all its built-in phases", function()
    local report, g = shutdown()
    local path = fit.critical_path(g, report)
    assert.equal(report.worst_case, path.seconds)
    assert.equal("actor-system-terminate", path.names[#path.names])
  end)

  it("of nothing is nothing", function()
    local report, g = startup({})
    assert.same({ names = {}, seconds = 0 }, fit.critical_path(g, report))
  end)
end)

describe("the reserve", function()
  it("is an eighth of the total, at most five seconds", function()
    assert.equal(5, budget.reserve(40))
    assert.equal(5, budget.reserve(120))
    assert.equal(0.25, budget.reserve(2))
  end)
end)

describe("a grace period", function()
  it("holds preStop, the total and a second", function()
    local report = shutdown()
    local found = fit.fits(report, 60, 10)
    assert.is_true(found.fits)
    assert.equal(51, found.needed)
    assert.same({}, found.warnings)
    assert.is_true(fit.fits(report, 51, 10).fits)
    assert.is_false(fit.fits(report, 50, 10).fits)
  end)

  it("that is too short is told from one that is long enough", function()
    local found = fit.fits(shutdown(), 30)
    assert.is_false(found.fits)
    assert.equal("does not fit the grace period of 30s: prestop 0s + shutdown total 40s + 1s = 41s"
      .. " (default); raise the grace period to 41s, or set shutdown.timeout to 29s", found.message)
    assert.matches("prestop 0s %+ linger 3s is less than 10s", found.warnings[1])
  end)
end)
