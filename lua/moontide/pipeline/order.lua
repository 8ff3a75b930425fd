--- The order of a graph: topological, ties by declaration order. Pure.
---
--- Phases are numbers here: their place in the declaration. At each step the
--- earliest declared phase whose dependencies are done comes next. A cursor runs
--- once over the declaration. A phase that is not free when the cursor meets it
--- waits for one of its dependencies, the first that is not done; when that is done
--- it looks on from there. So no edge is stored twice, and a plan declared in order
--- costs one look at each name.
---
--- Insertion: a phase that names only `after` runs before the built-in successor of
--- the latest phase it follows, which may itself be an inserted one. That is: once
--- the built-in chain has begun, such a phase runs as soon as it is free, ahead of
--- whatever else is.
local M = {}

--- 1 << n -> n
local BIT = {}
for n = 0, 63 do BIT[1 << n] = n end

--- Longer lists do not go over the stack (LUAI_MAXSTACK is 1,000,000).
local MOST_UNPACKED = 1 << 16

--- Whatever is filled from this on: a table with room for as many items as the list, so that it is
--- not moved a dozen times while it grows.
local function roomy(list, count)
  return count <= MOST_UNPACKED and { table.unpack(list, 1, count) } or {}
end

---@class tide.OrderInput
---@field names string[]
---@field waits string[][] the names that each phase waits for
---@field numbers table<string, integer> name -> number
---@field chained table<integer, true> built-in phases of the chain
---@field preceding table<integer, true> phases that name `before`
---@field last integer|nil the phase that is left out

---@class tide.OrderResult
---@field order string[] too short when there is a cycle or an unknown name
---@field done table<integer, true|false|integer> true: the phase is in the order
---@field inserted integer[] phases that run by the insertion rule

--- Sorts.
---
--- One long function, with everything in locals: calls and fields made it twice as
--- slow, and it is what a large plan waits for. What each phase is at stands in two
--- arrays. `state`: true when it is done, else the first of those that wait for it (a
--- list linked through `next_waiter`). `looked`: which of its names it waits for, or
--- waited for last; 0: not looked at yet, -1: free.
---
--- Free phases that the cursor does not come by are kept in a set of bits, with a
--- bit in `top` for each word that is not empty: the least is found in three steps.
--- (A heap was half the cost.) Those to be inserted stand ahead of all others, which
--- have `behind` added to their numbers.
---@param input tide.OrderInput
---@return tide.OrderResult
function M.sort(input)
  local names, waits, numbers = input.names, input.waits, input.numbers
  local chained, preceding, count = input.chained, input.preceding, #input.names
  local state, next_waiter = roomy(names, count), roomy(names, count)
  local looked = roomy(names, count)
  for number = 1, count do
    state[number], next_waiter[number], looked[number] = false, false, 0
  end
  local behind = ((count >> 6) + 1) << 6
  local words, top, size = {}, {}, 0
  for i = 0, behind >> 5 do words[i] = 0 end
  for i = 0, behind >> 11 do top[i] = 0 end

  -- A phase has to wait before those it follows are taken, or nothing would notice
  -- that it is free before their built-in successor. Nothing is done yet, so each
  -- waits for its first.
  if next(chained) then
    for number = 1, count do
      local name = not chained[number] and waits[number][1]
      if name and number ~= input.last then
        local other = numbers[name]
        looked[number] = 1
        if other then next_waiter[number], state[other] = state[other], number end
      end
    end
  end
  if input.last then looked[input.last] = 1 end -- waits for ever

  local order, placed, cursor, chain_begun = {}, 0, 0, false
  local inserted, insertions, waiter = {}, 0, false
  while true do
    -- Who is next to be looked at: one that waited for the phase just placed, else
    -- the least that is free, else whoever the cursor comes to.
    local number, free = waiter, false
    if number then
      waiter = next_waiter[number]
    elseif size > 0 then
      local t = 0
      while top[t] == 0 do t = t + 1 end
      local at = t << 6 | BIT[top[t] & -top[t]]
      local word = words[at]
      local rest = word & (word - 1)
      words[at] = rest
      if rest == 0 then top[t] = top[t] & (top[t] - 1) end
      size = size - 1
      number, free = at << 6 | BIT[word ~ rest], true
      if number >= behind then number = number - behind end
    else
      repeat
        cursor = cursor + 1
        if cursor > count then return { order = order, done = state, inserted = inserted } end
        number = looked[cursor]
      until number == 0 or number == -1 and state[cursor] ~= true
      number, free = cursor, number == -1
    end

    -- Is all that it waits for done? A name that nobody defines never is.
    if not free then
      local list, seen = waits[number], looked[number] + 1
      local name = list[seen]
      while name do
        local other = numbers[name]
        local first = state[other]
        if first ~= true then
          looked[number] = seen
          if other then next_waiter[number], state[other] = first, number end
          break
        end
        seen = seen + 1
        name = list[seen]
      end
      if not name then
        if number == cursor then -- the one it came to: whoever waits is another
          free = true
        else
          local value
          if chain_begun and not (chained[number] or preceding[number]) then
            insertions = insertions + 1
            inserted[insertions] = number
            value = number
          elseif number < cursor then
            value = number + behind
          else
            looked[number] = -1
          end
          if value then
            local at = value >> 6
            local word = words[at]
            words[at] = word | 1 << (value & 63)
            if word == 0 then top[at >> 6] = top[at >> 6] | 1 << (at & 63) end
            size = size + 1
          end
        end
      end
    end
    if free then
      waiter = state[number]
      state[number] = true
      placed = placed + 1
      order[placed] = names[number]
      chain_begun = chain_begun or chained[number]
    end
  end
end

return M
