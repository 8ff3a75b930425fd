--- The nearest right name for a wrong one. Pure; runs only on the way to an error.
local M = {}

local LISTED = 24

--- The same word in any spelling: ServiceUnbind, service_unbind, service-unbind.
local function squash(word)
  return (word:lower():gsub("[-_. ]", ""))
end

--- Edits that turn `a` into `b`; a swap of neighbours counts as one. Stops
--- early and returns `limit + 1` when no better result is possible.
local function distance(a, b, limit)
  if math.abs(#a - #b) > limit then return limit + 1 end
  local before, previous, current = {}, {}, {}
  for j = 0, #b do previous[j] = j end
  for i = 1, #a do
    current[0] = i
    local best = i
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      local d = math.min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost)
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        d = math.min(d, before[j - 2] + 1)
      end
      current[j] = d
      best = math.min(best, d)
    end
    if best > limit then return limit + 1 end
    before, previous, current = previous, current, before
  end
  return previous[#b]
end

--- The name meant by `word`, if one is near enough to be offered.
---@param word string
---@param names string[] of two equally near names the first wins
---@return string|nil
function M.nearest(word, names)
  local wanted = squash(word)
  local limit = math.max(1, #wanted // 3)
  local best
  for _, name in ipairs(names) do
    local candidate = squash(name)
    if candidate == wanted then return name end
    local d = distance(wanted, candidate, limit)
    if d <= limit then
      best, limit = name, d - 1
    end
  end
  return best
end

--- The keys of a table, sorted: the names that something has.
---@param of table<string, any>
---@return string[]
function M.names(of)
  local names = {}
  for name in pairs(of) do names[#names + 1] = tostring(name) end
  table.sort(names)
  return names
end

local function listed(names)
  if #names == 0 then return "there are none" end
  local text = table.concat(names, ", ", 1, math.min(#names, LISTED))
  if #names > LISTED then text = ("%s and %d more"):format(text, #names - LISTED) end
  return "known: " .. text
end

--- `unknown phase "servce-stop"; did you mean "service-stop"?`
---@param what string "phase", "option", "reason"
---@param word any
---@param names string[]
---@return string message
function M.unknown(what, word, names)
  local near = type(word) == "string" and M.nearest(word, names)
  local shown = type(word) == "string" and ("\"%s\""):format(word) or tostring(word)
  if near then return ("unknown %s %s; did you mean \"%s\"?"):format(what, shown, near) end
  return ("unknown %s %s; %s"):format(what, shown, listed(names))
end

return M
