--- Why phases have no order: names that nobody defines, and places that cannot be. Pure.
local suggest = require("moontide.suggest")

local M = {}

local function complain(errors, node, message, ...)
  errors[#errors + 1] = ("%s: phase \"%s\" %s"):format(node.site, node.name, message:format(...))
end

local function check_names(graph, errors, node, field, names)
  for _, name in ipairs(names) do
    if not graph.by_name[name] then
      local message = suggest.unknown("phase", name, graph:names())
      complain(errors, node, "names in %s an %s", field, message)
    end
    if field == "after" and name == graph.terminal then
      complain(errors, node, "is after \"%s\", which always runs last; name an earlier phase", name)
    end
  end
end

--- Adds what is wrong with the names that phases are said to come after and before.
---@param graph tide.PhaseGraph
---@param errors string[]
function M.add(graph, errors)
  for _, node in ipairs(graph.nodes) do
    check_names(graph, errors, node, "after", node.after)
    check_names(graph, errors, node, "before", node.before)
  end
  if graph.terminal and not graph.by_name[graph.terminal] then
    errors[#errors + 1] = ("the terminal phase \"%s\" is not defined"):format(graph.terminal)
  end
end

return M
