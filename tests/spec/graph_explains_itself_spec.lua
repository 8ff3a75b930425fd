require("support.paths")
local graph = require("moontide.pipeline.graph")
local graphs = require("support.graphs")

local function chain(edges)
  local parts = { edges[1].from }
  for i, edge in ipairs(edges) do
    parts[i + 1] = ("%s [%s, %s]"):format(edge.to, edge.kind, edge.site)
  end
  return table.concat(parts, " > ")
end

describe("why one phase runs before another", function()
  local g
  before_each(function()
    g = graphs.declare(graphs.shutdown(), {
      { "x", "service-stop" }, { "y", "x" }, { "z", { before = "cluster-leave" } }, { "w" },
    })
    assert.is_nil(g:seal())
  end)

  it("is the shortest chain of edges, each with the line that asks for it", function()
    assert.equal("service-stop > x [after, app.lua:1] > y [after, app.lua:2]",
      chain(g:why("service-stop", "y")))
    assert.equal("x > before-cluster-shutdown [inserted, app.lua:1]",
      chain(g:why("x", "before-cluster-shutdown")))
    assert.equal("z > cluster-leave [before, app.lua:3]", chain(g:why("z", "cluster-leave")))
    assert.equal("service-unbind > service-requests-done [built in, built in]",
      chain(g:why("service-unbind", "service-requests-done")))
  end)

  it("is the pin for the terminal phase", function()
    assert.equal("w > actor-system-terminate [last, built in]",
      chain(g:why("w", "actor-system-terminate")))
  end)

  it("is said to be nothing when there is nothing", function()
    local edges, message = g:why("y", "x")
    assert.is_nil(edges)
    assert.matches("not run before \"x\" but after it; ask why x y", message)
    message = select(2, g:why("z", "w"))
    assert.matches("only because it was declared first", message)
    assert.matches("is one phase", (select(2, g:why("x", "x"))))
    assert.matches("did you mean \"service%-stop\"", (select(2, g:why("servce-stop", "x"))))
  end)
end)

describe("the dependencies of a phase", function()
  it("are what must be over before it, insertions included", function()
    local g = graphs.declare(graphs.shutdown(), { { "x", "service-stop" }, { "y", "x" } })
    assert.is_nil(g:seal())
    assert.same({ "service-stop", "x", "y" }, g:dependencies("before-cluster-shutdown"))
    assert.same({ "x" }, g:dependencies("y"))
    assert.same({}, g:dependencies("before-service-unbind"))
    assert.equal(13, #g:dependencies("actor-system-terminate"))
  end)
end)

describe("a drawing", function()
  local g
  before_each(function()
    g = graph.new({ kind = "shutdown", terminal = "end" })
    g:builtin("begin")
    g:builtin("end")
    g:phase("say \"bye\"", { after = "begin" }, "app.lua:1")
    assert.is_nil(g:seal())
  end)

  it("for Mermaid has short ids and quoted names", function()
    assert.equal([[
flowchart TD
  p1["begin"]
  p2(["say #quot;bye#quot;"])
  p3["end"]
  p1 --> p3
  p1 --> p2
  p2 -. inserted .-> p3
]], g:mermaid())
  end)

  it("for Graphviz quotes every name", function()
    assert.equal([[
digraph shutdown {
  node [shape=box];
  "begin";
  "say \"bye\"" [style=rounded];
  "end";
  "begin" -> "end";
  "begin" -> "say \"bye\"";
  "say \"bye\"" -> "end" [style=dashed, label="inserted"];
}
]], g:dot())
  end)
end)
