--- Says what is wrong with a graph that has no order. Pure; runs only then, when all
--- names are known.
local M = {}

--- One edge into each stuck phase, from another stuck phase: name -> { from =,
--- kind =, site = }. What is stuck has at least one.
local function edges_into(graph, done)
  local by_name, into = graph.by_name, {}
  local function add(from, to, kind, site)
    if done[from.number] == true or done[to.number] == true or into[to.name] then return end
    into[to.name] = { from = from, kind = kind, site = site }
  end
  for _, node in ipairs(graph.nodes) do
    for _, name in ipairs(node.after) do
      add(by_name[name], node, "after", node.after_site or node.site)
    end
  end
  for _, node in ipairs(graph.preceding) do
    for _, name in ipairs(node.before) do add(node, by_name[name], "before", node.site) end
  end
  return into
end

--- Walks backwards from a stuck phase until one comes up again. A phase that an
--- earlier walk has seen ends it: that cycle is reported already.
local function walk(start, into, seen)
  local path, at_step, node = {}, {}, start
  while node and not seen[node] do
    seen[node] = true
    path[#path + 1] = node
    at_step[node] = #path
    local edge = into[node.name]
    node = edge and edge.from
  end
  local first = node and at_step[node]
  return first and table.move(path, first, #path, 1, {})
end

--- "a -> b (after, app.lua:4) -> a (after, app.lua:3)": each step with the line that
--- asks for it. `loop` runs backwards; the text begins at its first declared phase.
local function describe(into, loop)
  local first, length = 1, #loop
  for i, node in ipairs(loop) do
    if node.number < loop[first].number then first = i end
  end
  local parts = { loop[first].name }
  for step = 1, length do
    local node = loop[(first - 1 - step) % length + 1]
    local edge = into[node.name]
    parts[#parts + 1] = ("%s (%s, %s)"):format(node.name, edge.kind, edge.site)
  end
  return table.concat(parts, " -> "), loop[first].site
end

--- Adds an error for each separate cycle.
---@param graph tide.PhaseGraph
---@param done table<integer, any> of the sort: a phase that is not true there is stuck
---@param errors string[]
function M.report(graph, done, errors)
  local into, seen = edges_into(graph, done), {}
  for number, node in ipairs(graph.nodes) do
    local loop = done[number] ~= true and walk(node, into, seen)
    if loop then
      local text, site = describe(into, loop)
      errors[#errors + 1] = ("%s: the %s phases form a cycle: %s"):format(site, graph.kind, text)
    end
  end
end

return M
