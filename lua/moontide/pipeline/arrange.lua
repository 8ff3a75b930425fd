--- From names to an order: what `seal` does. Pure.
---
--- The usual case is made fast (one pass over the names, in `order`); whatever is
--- wrong shows as a result that is too short, and only then is it looked for.
local order = require("moontide.pipeline.order")

local M = {}

local function complain(errors, node, message, ...)
  errors[#errors + 1] = ("%s: phase \"%s\" %s"):format(node.site, node.name, message:format(...))
end

local function check_names(graph, errors, node, field, names)
  for _, name in ipairs(names) do
    if not graph.by_name[name] then
      local message = require("moontide.suggest").unknown("phase", name, graph:names())
      complain(errors, node, "names in %s an %s", field, message)
    end
    if field == "after" and name == graph.terminal then
      complain(errors, node, "is after \"%s\", which always runs last; name an earlier phase", name)
    end
  end
end

--- Adds what is wrong with the names.
local function check_all_names(graph, errors)
  for _, node in ipairs(graph.nodes) do
    check_names(graph, errors, node, "after", node.after)
    check_names(graph, errors, node, "before", node.before)
  end
  if graph.terminal and not graph.by_name[graph.terminal] then
    errors[#errors + 1] = ("the terminal phase \"%s\" is not defined"):format(graph.terminal)
  end
end

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

--- In a startup pipeline a phase that names `before` takes the place of the first
--- phase it precedes: the others keep the order in which they were declared. Numbers
--- the nodes anew.
local function move_ahead(graph)
  local slots, moved = {}, {}
  local function slot_of(node)
    if slots[node] then return slots[node] end
    local slot = node.number
    slots[node] = slot -- also ends the recursion when there is a cycle
    for _, name in ipairs(node.before) do slot = math.min(slot, slot_of(graph.by_name[name])) end
    slots[node] = slot
    return slot
  end
  for number, node in ipairs(graph.nodes) do
    local slot = slot_of(node)
    if slot < number then
      moved[slot] = moved[slot] or {}
      table.insert(moved[slot], node)
    end
  end
  local nodes = {}
  for number, node in ipairs(graph.nodes) do
    for _, ahead in ipairs(moved[number] or {}) do nodes[#nodes + 1] = ahead end
    if slots[node] == number then nodes[#nodes + 1] = node end
  end
  local waits = {}
  for number, node in ipairs(nodes) do
    waits[number] = graph.waits[node.number]
    graph.labels[number], graph.numbers[node.name] = node.name, number
  end
  for number, node in ipairs(nodes) do node.number = number end
  graph.nodes, graph.waits = nodes, waits
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
    check_all_names(graph, errors)
    return nil
  end
  if graph.kind == "startup" and graph.preceding[1] then move_ahead(graph) end
  local result = sort(graph, terminal)
  if #result.order < #graph.nodes then
    check_all_names(graph, errors)
    if #errors == 0 then require("moontide.pipeline.cycle").report(graph, result.done, errors) end
    return nil
  end
  warn_of_loners(graph)
  graph.inserted = result.inserted
  return result.order
end

return M
