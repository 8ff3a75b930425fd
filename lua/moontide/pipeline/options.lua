--- Reads the options of a phase: strict, so that a slip is an error and not a
--- setting that nobody hears of. Pure.
local duration = require("moontide.duration")
local suggest = require("moontide.lazy")("moontide.suggest")

local M = {}

local KEYS = {
  startup = { "after", "before", "timeout", "on_fail", "mode", "enabled", "always" },
  shutdown = { "after", "before", "timeout", "recover", "mode", "enabled", "always" },
}

local HINTS = {
  depends_on = "unknown option \"depends_on\"; did you mean \"after\"?",
  dependsOn = "unknown option \"dependsOn\"; did you mean \"after\"?",
}
local OTHER_SIDE = {
  startup = {
    recover = "recover belongs to shutdown phases; in startup it is on_fail:"
      .. " \"exit\", \"warn\" or tide.retry{...}",
  },
  shutdown = {
    on_fail = "on_fail belongs to startup phases; in shutdown it is recover: true or false",
  },
}

local MODES = { parallel = true, lifo = true, fifo = true }

local function show(value)
  return type(value) == "string" and ("\"%s\""):format(value) or tostring(value)
end

--- One name or a list of them; a list is copied, so that the caller's may change.
local function read_names(value, key)
  if type(value) == "string" and value ~= "" then return { value } end
  if type(value) ~= "table" then
    return nil, ("%s is a phase name or a list of them, not %s"):format(key, show(value))
  end
  local list, count = {}, 0
  for _ in next, value do count = count + 1 end
  for i = 1, count do
    local name = value[i]
    if type(name) ~= "string" or name == "" then
      return nil, ("%s is a plain list of phase names; item %d is %s"):format(key, i, show(name))
    end
    list[i] = name
  end
  return list
end

local function read_boolean(value, key)
  if type(value) == "boolean" then return value end
  return nil, ("%s is a boolean, true or false, not %s"):format(key, show(value))
end

--- Seconds, infinite for "none". Whether a total bounds it is checked with the
--- other illegal combinations.
local function read_timeout(value, key)
  if value == "none" then return math.huge end
  local seconds, message = duration.parse(value, key)
  if seconds == 0 then
    return nil, "timeout 0 is refused: no task could run; use enabled = false to skip a phase"
  end
  return seconds, message
end

local function read_mode(value)
  if MODES[value] then return value end
  return nil, ("mode is \"parallel\", \"lifo\" or \"fifo\", not %s"):format(show(value))
end

local function read_on_fail(value)
  if value == "exit" or value == "warn" then return value end
  if require("moontide.retry").is_policy(value) then return value end
  return nil, ("on_fail is \"exit\", \"warn\" or tide.retry{...}, not %s"):format(show(value))
end

local READERS = {
  after = read_names, before = read_names, timeout = read_timeout, recover = read_boolean,
  on_fail = read_on_fail, mode = read_mode, enabled = read_boolean, always = read_boolean,
}

local function unknown(kind, key)
  local hint = HINTS[key] or OTHER_SIDE[kind][key]
  return hint or suggest.unknown("option", key, KEYS[kind])
end

--- Fills `node` from `options`. Of several faults it reports the first by name, so
--- that the message does not depend on the order of a hash table.
---@param kind "startup"|"shutdown"
---@param node table
---@param options table|nil
---@return string|nil message
function M.read(kind, node, options)
  if options == nil then return nil end
  if type(options) ~= "table" then
    return ("options are a table, not %s"):format(show(options))
  end
  local other = OTHER_SIDE[kind]
  local worst_key, worst
  for key, value in next, options do
    local reader = not other[key] and READERS[key]
    local parsed, message
    if reader then
      parsed, message = reader(value, key)
    else
      message = unknown(kind, key)
    end
    if message then
      local name = tostring(key)
      if not worst_key or name < worst_key then worst_key, worst = name, message end
    else
      node[key] = parsed
    end
  end
  return worst
end

return M
