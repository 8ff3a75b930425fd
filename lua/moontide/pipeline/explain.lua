--- Says why a graph is ordered as it is, and draws it. Pure; made of a sealed graph
--- on demand, since most runs never ask.
local M = {}

---@class tide.PhaseEdge
---@field from string runs first
---@field to string
---@field kind "after"|"before"|"built in"|"inserted"|"last"
---@field site string who asks for it: "app.lua:3", "built in"

--- Every edge of the graph, but those that pin the terminal phase.
---@param graph tide.PhaseGraph
---@return tide.PhaseEdge[]
function M.edges(graph)
  local edges = {}
  local function add(from, to, kind, site)
    edges[#edges + 1] = { from = from, to = to, kind = kind, site = site }
  end
  for _, node in ipairs(graph.nodes) do
    local chained = node.chained and not node.after_site
    for _, name in ipairs(node.after) do
      add(name, node.name, chained and "built in" or "after", node.after_site or node.site)
    end
    for _, name in ipairs(node.before) do add(node.name, name, "before", node.site) end
  end
  -- What was inserted precedes the next built-in phase.
  local next_chained, inserted = nil, {}
  for _, number in ipairs(graph.inserted) do inserted[number] = true end
  for i = #graph.arranged, 1, -1 do
    local node = graph.by_name[graph.arranged[i]]
    if node.chained then next_chained = node.name end
    if inserted[node.number] and next_chained then
      add(node.name, next_chained, "inserted", node.after_site or node.site)
    end
  end
  return edges
end

--- Name -> edges that lead to it.
local function incoming(graph)
  if graph.incoming then return graph.incoming end
  local into = {}
  for _, edge in ipairs(M.edges(graph)) do
    into[edge.to] = into[edge.to] or {}
    table.insert(into[edge.to], edge)
  end
  graph.incoming = into
  return into
end

local function positions(graph)
  if graph.positions then return graph.positions end
  local at = {}
  for i, name in ipairs(graph.arranged) do at[name] = i end
  graph.positions = at
  return at
end

---@param graph tide.PhaseGraph
---@param name string
---@return string[]
function M.dependencies(graph, name)
  local names, seen = {}, {}
  if name == graph.terminal then
    for _, other in ipairs(graph.arranged) do
      if other ~= name then names[#names + 1] = other end
    end
    return names
  end
  for _, edge in ipairs(incoming(graph)[name] or {}) do
    if not seen[edge.from] then
      seen[edge.from] = true
      names[#names + 1] = edge.from
    end
  end
  local at = positions(graph)
  table.sort(names, function(a, b) return at[a] < at[b] end)
  return names
end

--- Breadth first from `b` backwards, so the chain found is a shortest one.
local function chain(graph, a, b)
  local into, leads, queue, head = incoming(graph), { [b] = false }, { b }, 1
  while queue[head] do
    local name = queue[head]
    head = head + 1
    if name == a then break end
    for _, edge in ipairs(into[name] or {}) do
      if leads[edge.from] == nil then
        leads[edge.from] = edge
        queue[#queue + 1] = edge.from
      end
    end
  end
  if not leads[a] then return nil end
  local edges, edge = {}, leads[a]
  while edge do
    edges[#edges + 1] = edge
    edge = leads[edge.to]
  end
  return edges
end

---@param graph tide.PhaseGraph
---@param a string
---@param b string
---@return tide.PhaseEdge[]|nil chain
---@return string? message
function M.why(graph, a, b)
  for _, name in ipairs({ a, b }) do
    if not graph.by_name[name] then
      return nil, require("moontide.suggest").unknown("phase", name, graph:names())
    end
  end
  if a == b then return nil, ("\"%s\" is one phase"):format(a) end
  local edges = chain(graph, a, b)
  if edges then return edges end
  if b == graph.terminal then
    return { { from = a, to = b, kind = "last", site = "built in" } }
  end
  local at = positions(graph)
  if at[a] > at[b] then
    return nil, ("\"%s\" does not run before \"%s\" but after it; ask why %s %s"):format(a, b, b, a)
  end
  return nil, ("\"%s\" runs before \"%s\" only because it was declared first; no edge asks for it"
    ):format(a, b)
end

--- The edges worth drawing: each pair once, and the terminal phase below all that
--- nothing else follows.
local function drawn(graph)
  local list, seen, followed = {}, {}, {}
  for _, edge in ipairs(M.edges(graph)) do
    local key = edge.from .. "\0" .. edge.to
    if not seen[key] then
      seen[key] = true
      followed[edge.from] = true
      list[#list + 1] = edge
    end
  end
  for _, name in ipairs(graph.arranged) do
    if graph.terminal and name ~= graph.terminal and not followed[name] then
      list[#list + 1] = { from = name, to = graph.terminal, kind = "last", site = "built in" }
    end
  end
  return list
end

local function labels(edge)
  return (edge.kind == "inserted" or edge.kind == "last") and edge.kind or nil
end

---@param graph tide.PhaseGraph
---@return string
function M.mermaid(graph)
  local lines, id = { "flowchart TD" }, {}
  for i, name in ipairs(graph.arranged) do
    id[name] = "p" .. i
    local text = name:gsub("\"", "#quot;")
    local shape = graph.by_name[name].builtin and "  %s[\"%s\"]" or "  %s([\"%s\"])"
    lines[#lines + 1] = shape:format(id[name], text)
  end
  for _, edge in ipairs(drawn(graph)) do
    local label = labels(edge)
    local arrow = label and ("-. %s .->"):format(label) or "-->"
    lines[#lines + 1] = ("  %s %s %s"):format(id[edge.from], arrow, id[edge.to])
  end
  return table.concat(lines, "\n") .. "\n"
end

local function quoted(text)
  return "\"" .. text:gsub("[\\\"]", "\\%0") .. "\""
end

---@param graph tide.PhaseGraph
---@return string
function M.dot(graph)
  local lines = { ("digraph %s {"):format(graph.kind), "  node [shape=box];" }
  for _, name in ipairs(graph.arranged) do
    local style = graph.by_name[name].builtin and "" or " [style=rounded]"
    lines[#lines + 1] = ("  %s%s;"):format(quoted(name), style)
  end
  for _, edge in ipairs(drawn(graph)) do
    local label = labels(edge)
    local style = label and (" [style=dashed, label=\"%s\"]"):format(label) or ""
    lines[#lines + 1] = ("  %s -> %s%s;"):format(quoted(edge.from), quoted(edge.to), style)
  end
  lines[#lines + 1] = "}"
  return table.concat(lines, "\n") .. "\n"
end

return M
