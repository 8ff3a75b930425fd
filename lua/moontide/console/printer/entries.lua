--- Which entries of a table are shown, found without running anything of its metatable.
--
-- The work is bounded whatever the size: a list's length is known without a walk, and of a table's
-- other keys so many are looked at.
local M = {}

-- So many keys are sorted; of more, the first that come are shown.
local SORTED = 1000
-- So many steps of `next` are taken, from the front and once more behind the list: some ms.
local WALK = 10000
-- So many places are kept for names when a list alone would take them all.
local NAMES = 10

---@class moontide.console.Entries
---@field list integer so many items of the list are shown: 1 to this
---@field keys any[] other keys that are shown, in order
---@field more integer entries that are not
---@field at_least boolean there may be still more

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

-- Takes the keys that are no part of the list, from `key` on; returns whether it came to the end.
local function walk(value, key, length, found)
  for _ = 1, WALK do
    key = next(value, key)
    if key == nil then return true end
    local listed = math.type(key) == "integer" and key >= 1 and key <= length
    if not listed and not found.seen[key] then
      found.n = found.n + 1
      if found.n <= SORTED then found[found.n], found.seen[key] = key, true end
    end
  end
  return false
end

-- The keys beside the list. A list is nearly always in the array part of its table: what follows
-- its last item is then all the rest.
local function other_keys(value, length)
  local found = { n = 0, seen = {} }
  local whole = walk(value, nil, length, found)
  if not whole and length >= WALK then whole = walk(value, length, length, found) end
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
---@return moontide.console.Entries
function M.of(value, limit)
  local length = rawlen(value)
  local others, whole = other_keys(value, length)
  local list, names = places(limit, length, others.n)
  if others.n <= SORTED then table.sort(others, before) end
  local keys = table.move(others, 1, names, 1, {})
  return {
    list = list, keys = keys, more = length - list + others.n - names, at_least = not whole,
  }
end

--- How many entries a table has that is not shown itself.
---@param value table
---@return integer count
---@return boolean at_least
function M.count(value)
  local entries = M.of(value, 0)
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
