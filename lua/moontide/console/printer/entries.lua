--- Which entries of a table are shown, found without running anything of its metatable.
--
-- The work is bounded whatever the size: a list's length is known without a walk, and of a table's
-- other keys so many are looked at.
local step = require "moontide.console.steps"

local M = {}

-- So many keys are sorted; of more, the first that come are shown.
local SORTED = 1000
-- So many steps are taken from the front of a table, and once more behind its list: some ms.
local WALK = 10000
-- So many in one text; then only as many of each table as it takes to show some.
local ALL = 50000
-- So many of a table that is only counted.
local COUNTED = 1000
-- So many places are kept for names when a list alone would take them all.
local NAMES = 10

---@class moontide.console.Entries
---@field list integer so many items of the list are shown: 1 to this
---@field keys any[] other keys that are shown, in order
---@field more integer entries that are not
---@field at_least boolean there may be still more

-- Steps between two moments when others may have their turn.
local REST = 64

---@class moontide.console.Walk
---@field left integer steps that may still be taken
---@field give_way fun() called now and then: others may have their turn, and change what is shown

local function nobody_waits() end

---@param give_way fun()|nil
---@return moontide.console.Walk
function M.walk(give_way)
  return { left = ALL, give_way = give_way or nobody_waits }
end

local RANK = { number = 1, string = 2, boolean = 3 }

local function before(a, b)
  local kind_a, kind_b = type(a), type(b)
  local rank_a, rank_b = RANK[kind_a] or 4, RANK[kind_b] or 4
  if rank_a ~= rank_b then return rank_a < rank_b end
  if rank_a <= 2 then return a < b end
  if rank_a == 3 then return not a and b end
  if kind_a ~= kind_b then return kind_a < kind_b end
  return ("%p"):format(a) < ("%p"):format(b)
end

-- Keys of one kind, as nearly always, need no comparison of ours.
local function sort(keys)
  local kind = type(keys[1])
  for i = 2, #keys do
    if type(keys[i]) ~= kind then return table.sort(keys, before) end
  end
  if RANK[kind] and RANK[kind] <= 2 then return table.sort(keys) end
  table.sort(keys, before)
end

-- Takes the keys that are no part of the list, from `key` on; returns whether it came to the end.
local function look(value, key, length, found, walk, most)
  local _, lost
  for taken = 1, most do
    if taken % REST == 0 then walk.give_way() end
    key, _, lost = step(value, key)
    if key == nil then
      found.steps = found.steps + taken
      return not lost
    end
    local listed = math.type(key) == "integer" and key >= 1 and key <= length
    if not listed and not found.seen[key] then
      found.n = found.n + 1
      if found.n <= SORTED then found[found.n], found.seen[key] = key, true end
    end
  end
  found.steps = found.steps + most
  return false
end

-- The keys beside the list. A list is nearly always in the array part of its table: what follows
-- its last item is then all the rest.
local function other_keys(value, length, walk, most)
  local found = { n = 0, seen = {}, steps = 0 }
  local whole = look(value, nil, length, found, walk, most)
  if not whole and length >= most then whole = look(value, length, length, found, walk, most) end
  found.seen = nil
  return found, whole
end

local function places(limit, length, others)
  local list = math.min(length, limit)
  local names = math.min(others, limit - list)
  if names < others and list == limit then
    names = math.min(others, NAMES, limit // 2)
    list = math.min(length, limit - names)
  end
  return list, names
end

--- What is shown of a table.
---@param value table
---@param limit integer items
---@param walk moontide.console.Walk
---@param most integer|nil steps
---@return moontide.console.Entries
function M.of(value, limit, walk, most)
  local length = rawlen(value)
  local others, whole = other_keys(value, length, walk, math.max(limit + 1,
    math.min(most or WALK, walk.left)))
  walk.left = walk.left - others.steps
  local list, names = places(limit, length, others.n)
  if others.n <= SORTED then sort(others) end
  local keys = table.move(others, 1, names, 1, {})
  return {
    list = list, keys = keys, more = length - list + others.n - names, at_least = not whole,
  }
end

--- How many entries a table has that is not shown itself.
---@param value table
---@param walk moontide.console.Walk
---@return integer count
---@return boolean at_least
function M.count(value, walk)
  local entries = M.of(value, 0, walk, COUNTED)
  return entries.more, entries.at_least
end

--- `12 more`, `at least 12 more`.
---@param count integer
---@param at_least boolean
---@return string
function M.more(count, at_least)
  return ("%s%d more"):format(at_least and "at least " or "", count)
end

return M
