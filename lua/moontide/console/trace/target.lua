--- What a text names that is to be traced: the function in a field, found without running any code,
--- or a phase, a task or a check.

local suggest = require "moontide.suggest"

local getmetatable, rawget = debug.getmetatable, rawget

local M = {}

---@class moontide.console.Field
---@field owner table where the function really stands
---@field key any
---@field label string

-- The table that has the field: itself, or what it inherits from by tables.
local function owner_of(t, key)
  for _ = 1, 16 do
    if rawget(t, key) ~= nil then return t end
    local meta = getmetatable(t)
    local index = meta and rawget(meta, "__index")
    if type(index) ~= "table" then return nil end
    t = index
  end
end

local function keys_of(t)
  local names = {}
  for key, value in next, t do
    if type(key) == "string" and type(value) == "function" then names[#names + 1] = key end
    if #names == 500 then break end
  end
  table.sort(names)
  return names
end

--- The function at a key of a table; raises a sentence when there is none.
---@param owner table
---@param key any
---@param name string of the table, for sentences
---@return moontide.console.Field
function M.field(owner, key, name)
  local there = owner_of(owner, key)
  local value = there and rawget(there, key)
  local label = type(key) == "string" and name .. "." .. key
    or ("%s[%s]"):format(name, tostring(key))
  if value == nil then
    error(("trace: %s"):format(suggest.unknown("function of " .. name, tostring(key),
      keys_of(owner))), 0)
  elseif type(value) ~= "function" then
    error(("trace: %s is a %s, not a function"):format(label, type(value)), 0)
  end
  return { owner = there, key = key, label = label }
end

local function parts_of(path)
  local parts = {}
  for part in path:gmatch "[^.:]+" do parts[#parts + 1] = part end
  return parts
end

-- Where a path begins: the longest beginning that is a loaded module, else a global.
local function root_of(parts, globals)
  for n = #parts - 1, 1, -1 do
    local name = table.concat(parts, ".", 1, n)
    local module = package.loaded[name]
    if type(module) == "table" then return module, n, name end
  end
  local value = rawget(globals, parts[1])
  if value == nil then value = rawget(_G, parts[1]) end
  if type(value) == "table" and #parts > 1 then return value, 1, parts[1] end
end

--- The function that a path names: "app.db.query". Nil when the path leads nowhere; raises when it
--- leads to a table that has no such function.
---@param path string
---@param globals table of the session
---@return moontide.console.Field|nil
function M.path(path, globals)
  local parts = parts_of(path)
  if #parts == 1 and type(rawget(_G, path)) == "function" then
    return { owner = _G, key = path, label = path }
  end
  local t, n, name = root_of(parts, globals)
  if not t then return nil end
  for i = n + 1, #parts - 1 do
    local owner = owner_of(t, parts[i])
    t = owner and rawget(owner, parts[i])
    if type(t) ~= "table" then return nil end
    name = name .. "." .. parts[i]
  end
  return M.field(t, parts[#parts], name)
end

-- ---- phases, tasks, checks ----------------------------------------------------------------------

---@class moontide.console.Happening what of the lifecycle is told
---@field label string
---@field of_tasks boolean|nil tasks that are no pipeline's: told of with their site for the phase
---@field fits fun(what: string, phase: string|nil, name: string|nil): boolean of "state",
--- "phase_began", ..., "check"; or of "task"

local function checks()
  local room = package.loaded["moontide.readiness"]
  return room and room.all() or {}
end

-- Names for more than one thing.
local GROUPS = {
  lifecycle = function(what) return what ~= "check" end,
  checks = function(what) return what == "check" end,
  tasks = function() return true end,
}

-- The nearest of so many is looked for: each takes microseconds, and the loop waits.
local MOST_NAMES = 1000

local function names_of_lifecycle()
  local names, seen = { "lifecycle", "checks", "tasks" }, {}
  local function add(name)
    if seen[name] then return end
    seen[name] = true
    if #names < MOST_NAMES then names[#names + 1] = name end
  end
  for _, kind in ipairs { "startup", "shutdown" } do
    local pipeline = require("moontide." .. kind)
    for _, phase in ipairs(pipeline.names) do
      add(phase)
      for entry in pipeline.tasks[phase]:each() do
        add(entry.name)
        add(phase .. "/" .. entry.name)
      end
    end
  end
  for name in pairs(checks()) do add(name) end
  return names, seen
end

-- "task NAME": the tasks of that name, whenever they run, or of a place in the script.
local function ordinary_task(name)
  local word = name:match "^task (.+)$"
  return word and { label = name, of_tasks = true, fits = function(_, site, item)
    return item == word or site:find(word, 1, true) ~= nil
  end }
end

--- What of the lifecycle a name means; with the known names when it means nothing.
---@param name string
---@return moontide.console.Happening|nil
---@return string[] names
function M.happening(name)
  local names, seen = names_of_lifecycle()
  if seen[name] then
    return { label = name, fits = function(what, phase, item)
      if what == "state" then return false end
      return phase == name or item == name or (phase and item and phase .. "/" .. item == name)
        or false
    end }, names
  elseif GROUPS[name] then
    return { label = name, of_tasks = name == "tasks", fits = GROUPS[name] }, names
  end
  return ordinary_task(name), names
end

return M
