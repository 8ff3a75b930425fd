--- Structured log records. `tide.log` is this module: the logger of component "app".
---
---   tide.log.info("order accepted", { id = 17, total = 9.5 })
---   local log = tide.log.for_component("outbox")
---   log.warn("slow", { seconds = 3.2 })
---
--- Nothing here waits: a record goes into a ring that a thread empties, and is dropped and counted
--- when that is full. Fields are written in the order of their names.
local core = require "moontide.core".log

-- A script that logs wants to be read at once, also when its main chunk then blocks.
core.release()

local loaded = package.loaded

local LEVELS = { debug = 0, info = 1, warn = 2, error = 3 }

local PLAIN = { string = true, number = true, boolean = true }

--- What a record can carry of a value that is neither string, number nor boolean.
local function describe(value)
  local meta = getmetatable(value)
  if type(value) == "table" and not (type(meta) == "table" and meta.__tostring) then
    local ok, text = pcall(require("moontide.json").encode, value)
    if ok then return text end
  end
  local ok, text = pcall(tostring, value)
  return ok and text or ("a %s whose __tostring fails"):format(type(value))
end

--- `key1, value1, ...` sorted by key, and how many that are.
local function flatten(fields)
  local keys, named = {}, {}
  for key, value in next, fields do
    local name = tostring(key)
    keys[#keys + 1] = name
    named[name] = value
  end
  table.sort(keys)
  local list = {}
  for i = 1, #keys do
    local value = named[keys[i]]
    if not PLAIN[type(value)] then value = describe(value) end
    list[2 * i - 1], list[2 * i] = keys[i], value
  end
  return list, 2 * #keys
end

local function check_message(message, name)
  if type(message) == "table" and message.for_component then
    error(("log.%s is called with a dot: log.%s(message, fields)"):format(name, name), 3)
  end
  -- A C string ends at its first NUL.
  return (tostring(message):gsub("\0", "\u{FFFD}"))
end

local function method(component, name)
  local level = LEVELS[name]
  return function(message, fields)
    local sinks = loaded["moontide.observe.sink"]
    if sinks and sinks.is_writing() then
      error(("log.%s: a sink cannot log: each record would bring the next"):format(name), 2)
    end
    if not core.enabled(level) then return end
    message = check_message(message, name)
    if fields == nil then return core.write(level, component, message) end
    if type(fields) ~= "table" then
      error(("log.%s: the fields are a table, not a %s"):format(name, type(fields)), 2)
    end
    local list, count = flatten(fields)
    core.write(level, component, message, table.unpack(list, 1, count))
  end
end

---@class moontide.Logger
---@field debug fun(message: string, fields?: table<string, any>)
---@field info fun(message: string, fields?: table<string, any>)
---@field warn fun(message: string, fields?: table<string, any>)
---@field error fun(message: string, fields?: table<string, any>)
---@field for_component fun(name: string): moontide.Logger

local for_component

---@param name string what the records' `component` says
---@return moontide.Logger
function for_component(name)
  if type(name) ~= "string" or name == "" then
    error("log.for_component: a name is wanted", 2)
  end
  local logger = { for_component = for_component }
  for level in next, LEVELS do logger[level] = method(name, level) end
  return logger
end

---@class moontide.Log : moontide.Logger
local M = for_component("app")

--- Adds a sink: the script's own way of writing the log, beside the core's.
---@param opts moontide.SinkOptions
---@return moontide.Sink
function M.sink(opts)
  return require("moontide.observe.sink").add(opts)
end

return M
