--- The order of a graph: topological, ties by declaration order. Pure.
---
--- At each step the earliest declared phase whose dependencies are done comes next.
--- A cursor runs once over the declaration. A phase that is not free when the
--- cursor meets it waits for one of its dependencies, the first that is not done;
--- when that is done it looks on from there. So no edge is stored twice, and a
--- plan declared in order costs one look at each name.
---
--- Insertion: a phase that names only `after` runs before the built-in successor of
--- the latest phase it follows, which may itself be an inserted one. That is: once
--- the built-in chain has begun, such a phase runs as soon as it is free, ahead of
--- whatever else is.
local M = {}

--- 1 << n -> n
local BIT = {}
for n = 0, 63 do BIT[1 << n] = n end

--- A set of small integers that gives back its least: one bit each, and a bit in
--- `top` for each word that is not empty. (A heap was half of the cost of a sort.)
local function new_set(count)
  local set = { words = {}, top = {} }
  for i = 0, count >> 6 do set.words[i] = 0 end
  for i = 0, count >> 12 do set.top[i] = 0 end
  return set
end

local function add(set, value)
  local w = value >> 6
  set.words[w] = set.words[w] | 1 << (value & 63)
  set.top[w >> 6] = set.top[w >> 6] | 1 << (w & 63)
end

local function take_least(set)
  local words, top, t = set.words, set.top, 0
  while top[t] == 0 do t = t + 1 end
  local summary = top[t]
  if not summary then return nil end
  local w = t << 6 | BIT[summary & -summary]
  local word = words[w]
  local lowest = word & -word
  word = word ~ lowest
  words[w] = word
  if word == 0 then top[t] = summary & ~(1 << (w & 63)) end
  return w << 6 | BIT[lowest]
end

--- Whether all that `node` waits for is done; if not, it is put among those that
--- wait for the first that is not. A name that nobody defines is never done.
local function is_free(node, by_name)
  local waits = node.waits
  for i = node.looked_at or 1, #waits do
    local other = by_name[waits[i]]
    if not (other and other.done) then
      node.looked_at, node.free = i, false
      if other then node.next_waiter, other.first_waiter = other.first_waiter, node end
      return false
    end
  end
  node.free = true
  return true
end

--- What a sort knows between its steps.
local function new_sort(nodes, by_name)
  local sort = { by_name = by_name, cursor = 0, chain_begun = false }
  -- Free phases that do not wait for the cursor: to be inserted, or behind it.
  sort.inserted, sort.behind = new_set(#nodes), new_set(#nodes)
  return sort
end

--- Looks again at those that wait for `node`, which is done.
local function wake(sort, node)
  local waiter = node.first_waiter
  while waiter do
    local following = waiter.next_waiter
    if is_free(waiter, sort.by_name) then
      if sort.chain_begun and not waiter.chained and #waiter.before == 0 then
        waiter.inserted = true
        add(sort.inserted, waiter.number)
      elseif waiter.number < sort.cursor then
        add(sort.behind, waiter.number)
      end
    end
    waiter = following
  end
end

--- Sorts. `nodes` stand in their order of declaration, with the fields `number`,
--- `waits` (names), `chained` (built in) and `before`; the sort leaves marks in them.
--- `last` is left out. With a cycle or an unknown name the result is too short.
---@param nodes tide.PhaseNode[]
---@param by_name table<string, tide.PhaseNode>
---@param last tide.PhaseNode|nil
---@param has_chain boolean whether there are built-in phases
---@return string[] names
function M.sort(nodes, by_name, last, has_chain)
  local sort = new_sort(nodes, by_name)
  if last then last.free = false end -- never looked at, so it never waits
  -- A phase has to wait before the phases it follows are taken, or nothing would
  -- notice that it is free before their built-in successor.
  if has_chain then
    for _, node in ipairs(nodes) do
      if not node.chained and node ~= last then is_free(node, by_name) end
    end
  end
  local names, placed, cursor = {}, 0, 0
  while true do
    local number = take_least(sort.inserted) or take_least(sort.behind)
    local node = nodes[number]
    while not node do
      cursor = cursor + 1
      node = nodes[cursor]
      if not node then return names end
      local free = node.free
      if free == nil then free = is_free(node, by_name) end
      if not free or node.done then node = nil end
    end
    sort.cursor = cursor
    node.done = true
    placed = placed + 1
    names[placed] = node.name
    if node.chained then sort.chain_begun = true end
    if node.first_waiter then wake(sort, node) end
  end
end

return M
