--- `where(id)`: where a task is, through what it awaits, and what awaits it.
local core = require "moontide.core"
local suggest = require "moontide.suggest"
local tasks = require "moontide.console.inspect.tasks"
local view = require "moontide.view"
local walk = require "moontide.console.inspect.walk"

local M = {}

--- Bytes of a stack that are shown.
local LONGEST = 16384
--- Names that an error lists, and that one looks among for the nearest.
local NAMED = 500

-- The name of its own, or the number if somebody was told of it.
local function name_of(t)
  local opts = t.opts
  if opts and opts.name or core.task.given(t, "id") then return tasks.name_of(t) end
end

local function by_id(id)
  local found
  walk.each(function(t)
    if core.task.given(t, "id") == id then found = t end
    return found ~= nil
  end)
  return found
end

-- The task of a name, and how many have it.
local function by_name(name)
  local found, count = nil, 0
  walk.each(function(t)
    if name_of(t) == name then found, count = found or t, count + 1 end
  end)
  return found, count
end

-- What ended lately under this number.
local function ended_text(id)
  local ended = package.loaded["moontide.task.ended"]
  for _, entry in ipairs(ended and ended.list() or {}) do
    if entry.id == id then
      local why = entry.error and entry.error:gsub("^cancelled: ", "")
      return (": it has ended, %s%s"):format(entry.outcome, why and " (" .. why .. ")" or "")
    end
  end
end

local function known_ids()
  local ids = {}
  walk.each(function(t)
    local id = core.task.given(t, "id")
    if id then ids[#ids + 1] = id end
    return #ids >= NAMED
  end)
  table.sort(ids)
  local shown = table.concat(ids, ", ", 1, math.min(#ids, 12))
  if #ids == 0 then return "; tasks() gives them numbers" end
  return ("; there are %s%s: see tasks()"):format(shown, #ids > 12 and ", …" or "")
end

local function unknown_id(id)
  error(("no task has the number %d%s"):format(id, ended_text(id) or known_ids()), 0)
end

local function unknown_name(name)
  local names, seen = {}, {}
  walk.each(function(t)
    local other = name_of(t)
    if other and not seen[other] then
      seen[other] = true
      names[#names + 1] = other
    end
    return #names >= NAMED
  end)
  table.sort(names)
  error(suggest.unknown("task", name, names), 0)
end

local function find(which)
  local id = math.tointeger(which)
  if id then
    return by_id(id) or unknown_id(id), 1
  elseif type(which) == "string" then
    local found, count = by_name(which)
    return found or unknown_name(which), count
  end
  error(("where(id): the number or the name of a task is wanted, not %s"):format(
    which == nil and "nothing" or "a " .. type(which)), 0)
end

-- The tasks that end only after this one, from the nearest on.
local function owners_of(t)
  local list, owner = {}, t.scope.owner
  while owner and #list < 20 do
    list[#list + 1] = { id = owner.id, name = tasks.name_of(owner), site = owner:site() }
    owner = owner.scope.owner
  end
  return list
end

local function render(data)
  local owners = {}
  for i, owner in ipairs(data.owners) do owners[i] = ("%s (%d)"):format(owner.name, owner.id) end
  return view.lines(
    ("task %d, %s%s: %s, %s old, from %s"):format(data.id, view.cut(data.name, 60),
      data.kind and " (" .. data.kind .. ")" or "", view.cut(data.waiting_on or data.state, 80),
      view.time(data.age), data.site),
    data.same_name > 1 and ("%d tasks have this name; this is one of them"):format(data.same_name)
      or nil,
    data.cancelled and "to end: " .. data.cancelled or nil,
    data.deadline_in and "deadline in " .. view.time(data.deadline_in) or nil,
    #owners > 0 and "belongs to " .. table.concat(owners, ", which belongs to ")
      or "belongs to scope " .. data.scope,
    data.stack)
end

--- Where a task is.
---@async
---@param which integer|string the number that `tasks()` shows, or a name
---@return table
function M.where(which)
  local t, count = find(which)
  local stack = t:traceback()
  local data = tasks.row(t)
  data.same_name, data.owners = count, owners_of(t)
  data.stack = #stack > LONGEST and stack:sub(1, LONGEST) .. "\n…" or stack
  require("moontide.json").array(data.owners)
  return view.new(data, render)
end

return M
