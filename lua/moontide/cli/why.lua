--- `moontide why A B`: the chain of edges that puts phase A before phase B.
local arguments = require("moontide.cli.arguments")
local suggest = require("moontide.suggest")
local view = require("moontide.view")

local M = {}

local function parser()
  local p = arguments.parser("why",
    "Prints the chain of edges that puts phase A before phase B, each with the line that asks"
      .. " for it. Exits with 1 when no edge does.", {
      "moontide why flush-metrics actor-system-terminate app.lua",
      "moontide why --pipeline startup db listener app.lua",
    })
  p:argument("a", "The phase that runs first.")
  p:argument("b", "The phase that runs later.")
  arguments.add_script(p)
  p:option("--pipeline", "Where to look; default: the one that has both phases.")
    :choices({ "startup", "shutdown" })
  return p
end

--- The graph that has both phases, or what is wrong.
local function graph_of(app, values)
  if values.pipeline then return app[values.pipeline].graph end
  local known = {}
  for _, kind in ipairs({ "shutdown", "startup" }) do
    local graph = app[kind].graph
    if graph:get(values.a) and graph:get(values.b) then return graph end
    table.move(graph:names(), 1, #graph:names(), #known + 1, known)
  end
  for _, name in ipairs({ values.a, values.b }) do
    if not (app.startup.graph:get(name) or app.shutdown.graph:get(name)) then
      return nil, suggest.unknown("phase", name, known)
    end
  end
  return nil, ("\"%s\" and \"%s\" are in different pipelines"):format(values.a, values.b)
end

local WORDS = {
  ["after"] = "asks to be after", ["before"] = "asks to be before", ["built in"] = "is after",
  ["inserted"] = "is inserted before", ["last"] = "precedes the last phase",
}

local function print_chain(edges)
  local rows = {}
  for i, edge in ipairs(edges) do
    local who, whom = edge.from, edge.to
    if edge.kind == "after" or edge.kind == "built in" then who, whom = whom, who end
    rows[i] = {
      ("%s -> %s"):format(edge.from, edge.to), ("%s %s %s"):format(who, WORDS[edge.kind], whom),
      edge.site,
    }
  end
  io.stdout:write(view.columns({ "", "", "" }, rows, view.WHOLE), "\n")
end

---@param args string[]
---@return integer code
function M.main(args)
  local app, values = arguments.app(parser(), args)
  if not app then return values end
  local graph, message = graph_of(app, values)
  local edges
  if graph then edges, message = graph:why(values.a, values.b) end
  if not edges then
    io.stderr:write("moontide: ", message, "\n")
    return 1
  end
  io.stdout:write(("%s runs before %s (%s):\n"):format(values.a, values.b, graph.kind))
  print_chain(edges)
  return 0
end

return M
