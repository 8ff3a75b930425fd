require("support.paths")
local graph = require("moontide.pipeline.graph")
local graphs = require("support.graphs")

local function order(kind, rows)
  return graphs.order(graphs.declare(graph.new({ kind = kind }), rows))
end

--- The order of the shutdown pipeline with these phases added, from `first` to `last`.
local function part(rows, first, last)
  local text = graphs.order(graphs.declare(graphs.shutdown(), rows))
  local from, to = text:find(first .. " ", 1, true), text:find(" " .. last, 1, true)
  return text:sub(from + #first + 1, to - 1)
end

describe("the order of phases", function()
  it("breaks ties by declaration", function()
    assert.equal("z m a", order("shutdown", { { "z" }, { "m" }, { "a" } }))
    assert.equal("b a c d", order("shutdown", { { "a", "b" }, { "b" }, { "c", "a" }, { "d" } }))
  end)

  it("takes the earliest declared of those that are free", function()
    assert.equal("b a c", order("shutdown", { { "a", "b" }, { "b" }, { "c" } }))
    assert.equal("c b a d", order("shutdown", { { "a", "b" }, { "b", "c" }, { "c" }, { "d" } }))
  end)

  it("is the declaration in startup, but for what after and before ask", function()
    assert.equal("a b c", order("startup", { { "a" }, { "b" }, { "c" } }))
    assert.equal("a c d b", order("startup", { { "a" }, { "b", "d" }, { "c" }, { "d" } }))
    -- What names `before` goes there; the others stay as declared.
    assert.equal("a x b c", order("startup", {
      { "a" }, { "b" }, { "c" }, { "x", { before = "b" } },
    }))
    assert.equal("a y x b c", order("startup", {
      { "a" }, { "b" }, { "c" }, { "x", { before = "b" } }, { "y", { before = { "x", "c" } } },
    }))
  end)

  it("names each phase once, however often an edge is asked for", function()
    assert.equal("a b", order("shutdown", {
      { "a", { before = { "b", "b" } } }, { "b", { after = { "a", "a" } } },
    }))
  end)
end)

describe("an inserted phase", function()
  it("runs before the built-in successor of the phase it follows", function()
    assert.equal("flush", part({ { "flush", "service-stop" } },
      "service-stop", "before-cluster-shutdown"))
    assert.equal("flush", part({ { "flush", "before-actor-system-terminate" } },
      "before-actor-system-terminate", "actor-system-terminate"))
  end)

  it("stands among others by declaration", function()
    assert.equal("x y z", part({
      { "x", "service-stop" }, { "y", "service-stop" }, { "z", "service-stop" },
    }, "service-stop", "before-cluster-shutdown"))
  end)

  it("counts through other inserted phases", function()
    assert.equal("x y z", part({ { "x", "service-stop" }, { "y", "x" }, { "z", "y" } },
      "service-stop", "before-cluster-shutdown"))
    -- Declared the other way round.
    assert.equal("x y z", part({ { "z", "y" }, { "y", "x" }, { "x", "service-stop" } },
      "service-stop", "before-cluster-shutdown"))
  end)

  it("goes by the latest of the phases it follows", function()
    local rows = {
      { "x", { after = { "service-unbind", "cluster-leave" } } }, { "y", { "x", "service-stop" } },
    }
    assert.equal("x y", part(rows, "cluster-leave", "cluster-exiting"))
  end)

  it("that names before too runs where that says", function()
    local rows = {
      { "x", { after = "service-stop", before = "cluster-leave" } }, { "y", "x" },
    }
    assert.equal("x y", part(rows, "cluster-sharding-shutdown-region", "cluster-leave"))
  end)

  it("runs right before the phase it names, when it names only before", function()
    assert.equal("x", part({ { "x", { before = "service-stop" } } },
      "service-requests-done", "service-stop"))
    assert.equal("x y", part({ { "x", { before = "service-stop" } }, { "y", "x" } },
      "service-requests-done", "service-stop"))
  end)

  it("may precede the first phase", function()
    local g = graphs.declare(graphs.shutdown(), { { "x", { before = "before-service-unbind" } } })
    assert.matches("^x before%-service%-unbind ", graphs.order(g))
  end)

  it("is inserted between the phases of a startup profile as well", function()
    local g = graph.new({ kind = "startup" })
    for _, name in ipairs({ "config", "db", "ready" }) do g:builtin(name) end
    g:phase("warm-up", { after = "db" }, "app.lua:1")
    g:phase("late", nil, "app.lua:2")
    assert.equal("config db warm-up ready late", graphs.order(g))
  end)

  it("does not contradict a setting that moved a built-in phase", function()
    local config = require("moontide.config")
    config.reset()
    config.set({ shutdown = { phases = { ["service-unbind"] = { after = { "service-stop" } },
      ["service-requests-done"] = { after = { "before-service-unbind" } } } } }, "app.lua:1")
    local g = graphs.declare(graphs.shutdown(), { { "x", "service-unbind" } })
    g:configure(config)
    config.reset()
    assert.matches("^before%-service%-unbind service%-requests%-done service%-stop ",
      graphs.order(g))
    local at = graphs.places(g)
    assert.is_true(at["service-unbind"] < at.x)
  end)
end)

describe("the terminal phase", function()
  it("is pinned last, also without an edge", function()
    local g = graph.new({ kind = "shutdown", terminal = "end" })
    g:builtin("end")
    graphs.declare(g, { { "a" }, { "b", { before = "end" } } })
    assert.equal("a b end", graphs.order(g))
    assert.same({ "a", "b" }, g:dependencies("end"))
  end)

  it("cannot be followed", function()
    local g = graphs.declare(graphs.shutdown(), { { "x", "actor-system-terminate" } })
    local errors = g:seal()
    assert.same({ "app.lua:1: phase \"x\" is after \"actor-system-terminate\", which always runs"
      .. " last; name an earlier phase" }, errors)
  end)

  it("may be the script's own, among built-in ones", function()
    local g = graph.new({ kind = "startup", terminal = "go" })
    g:builtin("config")
    graphs.declare(g, { { "go", "config" }, { "x", "config" }, { "y" } })
    g:builtin("ready")
    assert.equal("config x y ready go", graphs.order(g))
  end)

  it("has to be defined", function()
    local errors = graph.new({ kind = "shutdown", terminal = "end" }):seal()
    assert.matches("terminal phase \"end\" is not defined", errors[1])
  end)
end)
