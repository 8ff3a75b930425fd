--- `moontide graph`: the phases as a drawing.
local arguments = require("moontide.cli.arguments")

local M = {}

local function parser()
  local p = arguments.add_script(arguments.parser("graph",
    "Draws the phases of a pipeline as text for Mermaid or Graphviz.", {
      "moontide graph app.lua",
      "moontide graph --format dot --pipeline startup app.lua | dot -Tsvg > startup.svg",
    }))
  p:option("--format", "The language of the drawing."):choices({ "mermaid", "dot" })
    :default("mermaid")
  p:option("--pipeline", "Which one."):choices({ "startup", "shutdown" }):default("shutdown")
  return p
end

---@param args string[]
---@return integer code
function M.main(args)
  local app, values = arguments.app(parser(), args)
  if not app then return values end
  local graph = app[values.pipeline].graph
  io.stdout:write(values.format == "dot" and graph:dot() or graph:mermaid())
  return 0
end

return M
