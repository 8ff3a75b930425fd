--- From names to an order: what `seal` does. Pure.
---
--- The usual case is made fast (one pass over the names, in `order`); whatever is
--- wrong shows as a result that is too short, and only then is it looked for.
local lazy = require("moontide.lazy")
local order = require("moontide.pipeline.order")

local faults = lazy("moontide.pipeline.faults")

local M = {}

--- Adds to the names that each phase waits for, its own `after`, whoever names it in
--- `before`. False when such a name is unknown.
local function collect_waits(graph)
  local waits, known = graph.waits, true
  for _, node in ipairs(graph.preceding) do
    for _, name in ipairs(node.before) do
      local other = graph.by_name[name]
      if other then
        local list = waits[other.number]
        -- A list of its own: `after` is what the phase itself asks for.
        if list == other.after then list = table.move(list, 1, #list, 1, {}) end
        waits[other.number] = list
        list[#list + 1] = node.name
      else
        known = false
      end
    end
  end
  return known
end

local function named_phases(graph)
  local named = {}
  for _, node in ipairs(graph.nodes) do
    for _, name in ipairs(node.after) do named[name] = true end
    for _, name in ipairs(node.before) do named[name] = true end
  end
  return named
end

--- A phase that no edge concerns runs somewhere, which nobody can have meant.
local function warn_of_loners(graph)
  if graph.kind ~= "shutdown" then return end
  local named
  for _, node in ipairs(graph.loners) do
    if not node.builtin and #node.after == 0 and node.name ~= graph.terminal then
      named = named or named_phases(graph)
      if not named[node.name] then
        graph.warnings[#graph.warnings + 1] = (
          "%s: phase \"%s\" has neither after nor before, so its place is an accident"):format(
          node.site, node.name)
      end
    end
  end
end

local function numbers_of(nodes, wanted)
  local numbers = {}
  for _, node in ipairs(nodes) do
    if wanted(node) then numbers[node.number] = true end
  end
  return numbers
end

local function sort(graph, terminal)
  local result = order.sort({
    names = graph.labels, waits = graph.waits, numbers = graph.numbers,
    chained = numbers_of(graph.builtins, function(node) return node.chained end),
    preceding = numbers_of(graph.preceding, function() return true end),
    last = terminal and terminal.number,
  })
  result.order[#result.order + 1] = graph.terminal
  return result
end

--- Arranges the phases of a graph; what is wrong is added to `errors`.
---@param graph tide.PhaseGraph
---@param errors string[]
---@return string[]|nil order
function M.arrange(graph, errors)
  local terminal = graph.terminal and graph.by_name[graph.terminal]
  if not collect_waits(graph) or (graph.terminal and not terminal) or #errors > 0 then
    faults.add(graph, errors)
    return nil
  end
  if graph.kind == "startup" and graph.preceding[1] then
    require("moontide.pipeline.move_ahead")(graph)
  end
  local result = sort(graph, terminal)
  if #result.order < #graph.nodes then
    faults.add(graph, errors)
    if #errors == 0 then require("moontide.pipeline.cycle").report(graph, result.done, errors) end
    return nil
  end
  warn_of_loners(graph)
  graph.inserted = result.inserted
  return result.order
end

return M
