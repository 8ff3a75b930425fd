--- Looking at values without running anything: raw reads, and `__index` where it is a table.
local commands = require "moontide.console.commands"
local step = require "moontide.console.steps"

local M = {}

-- `__index` is followed so far; a longer chain is likely a cycle.
local CHAIN = 50
-- So many keys of one table are looked at.
local KEYS = 10000

-- What `value.name` falls back to, when that is a table.
local function index_of(value)
  local meta = debug.getmetatable(value)
  local index = type(meta) == "table" and rawget(meta, "__index")
  return type(index) == "table" and index or nil
end

--- `value[key]` as far as that is found without running anything.
---@param value any
---@param key any
---@return any nil: there is none, or it would take code to know
function M.get(value, key)
  for _ = 1, CHAIN do
    if type(value) == "table" then
      local found = rawget(value, key)
      if found ~= nil then return found end
    end
    value = index_of(value)
    if value == nil then return nil end
  end
end

--- The keys of a value that are strings, with what they hold: its own and those it inherits.
---@param value any
---@param take fun(key: string, value: any)
function M.each(value, take)
  for _ = 1, CHAIN do
    if type(value) == "table" then
      local key, held
      for _ = 1, KEYS do
        key, held = step(value, key)
        if key == nil then break end
        if type(key) == "string" then take(key, held) end
      end
    end
    value = index_of(value)
    if value == nil then return end
  end
end

-- Where a global name of an evaluation is looked for: its environment, the commands, the globals of
-- the program. The environment's own way to the latter may be a function.
local function globals()
  return package.loaded._G
end

--- The global `name` of an evaluation.
---@param env table
---@param name string
---@return any
function M.global(env, name)
  local found = M.get(env, name)
  if found ~= nil then return found end
  local command = commands.find(name)
  if command then return command.fn end
  return M.get(globals(), name)
end

--- All global names of an evaluation.
---@param env table
---@param take fun(key: string, value: any)
function M.each_global(env, take)
  M.each(env, take)
  for _, command in ipairs(commands.list) do take(command.name, command.fn) end
  M.each(globals(), take)
end

--- Whether the value can be called, as far as that is known without trying.
---@param value any
---@return boolean
function M.is_callable(value)
  if type(value) == "function" then return true end
  local meta = (type(value) == "table" or type(value) == "userdata") and debug.getmetatable(value)
  return type(meta) == "table" and rawget(meta, "__call") ~= nil
end

return M
