require("support.paths")
local config = require("moontide.config")
local graph = require("moontide.pipeline.graph")
local graphs = require("support.graphs")

local function errors_of(kind, rows)
  return graphs.declare(graph.new({ kind = kind }), rows):seal()
end

describe("a cycle", function()
  it("is shown whole, each edge with its line", function()
    assert.same({
      "app.lua:1: the startup phases form a cycle: a -> b (after, app.lua:2) -> c (after,"
        .. " app.lua:3) -> a (after, app.lua:1)",
    }, errors_of("startup", { { "a", "c" }, { "b", "a" }, { "c", "b" }, { "d", "c" } }))
  end)

  it("names the phase that asked for the edge by before", function()
    assert.same({
      "app.lua:1: the shutdown phases form a cycle: a -> b (before, app.lua:1) -> a (after,"
        .. " app.lua:1)",
    }, errors_of("shutdown", { { "a", { before = "b", after = "b" } }, { "b" } }))
  end)

  it("of one phase is one", function()
    assert.matches("cycle: a %-> a %(after, app.lua:1%)", errors_of("startup", { { "a", "a" } })[1])
  end)

  it("is reported once for each that is separate", function()
    local errors = errors_of("startup", {
      { "a", "b" }, { "b", "a" }, { "c" }, { "d", "e" }, { "e", "d" }, { "f", { "a", "d" } },
    })
    assert.equal(2, #errors)
    assert.matches("a %-> b", errors[1])
    assert.matches("d %-> e", errors[2])
  end)

  it("can go through built-in phases", function()
    local g = graphs.declare(graphs.shutdown(), {
      { "x", { after = "service-stop", before = "service-unbind" } },
    })
    assert.matches("service-unbind -> service-requests-done (after, built in) -> service-stop"
      .. " (after, built in) -> x (after, app.lua:1) -> service-unbind (before, app.lua:1)",
      g:seal()[1], 1, true)
  end)
end)

describe("an undefined phase", function()
  it("is an error at the seal, with the nearest name", function()
    local g = graphs.declare(graphs.shutdown(), {
      { "a", "servce-stop" }, { "b", { before = "nowhere" } },
    })
    local errors = g:seal()
    assert.equal(2, #errors)
    assert.equal("app.lua:1: phase \"a\" names in after an unknown phase \"servce-stop\"; did you"
      .. " mean \"service-stop\"?", errors[1])
    assert.matches("^app.lua:2: phase \"b\" names in before an unknown phase \"nowhere\"; known: ",
      errors[2])
  end)

  it("in the settings is one too", function()
    config.reset()
    config.set({ shutdown = { phases = { ["service-sop"] = { timeout = 3 } } } }, "app.lua:7")
    local g = graphs.shutdown()
    g:configure(config)
    config.reset()
    assert.same({ "config app.lua:7: shutdown.phases: unknown phase \"service-sop\"; did you mean"
      .. " \"service-stop\"?" }, g:seal())
  end)
end)

describe("a shutdown phase without an edge", function()
  it("is a warning", function()
    local g = graphs.declare(graphs.shutdown(), {
      { "lonely" }, { "x", "service-stop" }, { "y" }, { "z", "y" },
    })
    assert.is_nil(g:seal())
    assert.same({ "app.lua:1: phase \"lonely\" has neither after nor before, so its place is an"
      .. " accident" }, g.warnings)
    assert.equal("actor-system-terminate", g:order()[#g:order()])
  end)

  it("is none in startup, where the declaration is the order", function()
    assert.same({}, graphs.sealed("startup", { { "a" }, { "b" } }).warnings)
  end)
end)

describe("the settings of a phase", function()
  it("override what the script says, and say so", function()
    config.reset()
    config.set({ shutdown = { phases = {
      ["service-stop"] = { timeout = "9s", recover = false, enabled = false },
      flush = { after = { "cluster-leave" } },
    } } }, "app.lua:7")
    config.load_env({ MOONTIDE_SHUTDOWN__PHASES__CLUSTER_LEAVE__TIMEOUT = "7" })
    assert.same({}, config.seal())
    local g = graphs.declare(graphs.shutdown(), { { "flush", "service-stop" } })
    g:configure(config)
    config.reset()
    local node = g:get("service-stop")
    assert.equal(9, node.timeout)
    assert.equal("config app.lua:7", node.timeout_origin)
    assert.is_false(node.recover)
    assert.is_false(node.enabled)
    assert.equal(7, g:get("cluster-leave").timeout)
    assert.matches("^environment MOONTIDE_", g:get("cluster-leave").timeout_origin)
    assert.matches("cluster%-leave flush cluster%-exiting ", graphs.order(g))
  end)

  it("of a call at run time override both", function()
    local g = graphs.shutdown()
    g:set_timeout("service-stop", "8s", "app.lua:9")
    assert.equal(8, g:get("service-stop").timeout)
    assert.equal("call app.lua:9", g:get("service-stop").timeout_origin)
    assert.error_matches(function() g:set_timeout("service-sop", 1) end, "service%-stop")
    assert.error_matches(function() g:set_timeout("service-stop", 0) end, "refused")
  end)
end)
