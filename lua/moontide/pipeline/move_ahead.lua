--- Phases of a startup with `before`. Pure.

--- In a startup pipeline a phase that names `before` takes the place of the first
--- phase it precedes: the others keep the order in which they were declared. Numbers
--- the nodes anew.
---@param graph tide.PhaseGraph
return function(graph)
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
