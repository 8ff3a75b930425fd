--- Checks the options that a script gives to a task.

local fail = require("moontide.site").fail
local suggest = require "moontide.lazy" "moontide.suggest"

local KINDS = { timeout = "duration", after = "name", skip_on = "names" }
local OPTION_NAMES = { "timeout", "after", "skip_on" }
-- Options of a phase, given to a task: say where they belong.
local OF_PHASE = {
  recover = "recover is an option of a shutdown phase, not of a task",
  on_fail = "on_fail is an option of a startup phase, not of a task",
  mode = "mode is an option of the phase, not of a task",
  enabled = "enabled is an option of the phase, not of a task",
  depends_on = "unknown task option \"depends_on\"; did you mean \"after\"?",
}

local function names_of(value)
  if type(value) == "string" then return { value } end
  if type(value) ~= "table" then return nil end
  for _, name in ipairs(value) do
    if type(name) ~= "string" then return nil end
  end
  return value
end

local function check_option(key, value, what, out)
  local kind = KINDS[key]
  if OF_PHASE[key] then
    fail(("%s: %s"):format(what, OF_PHASE[key]))
  elseif not kind then
    fail(("%s: %s"):format(what, suggest.unknown("task option", tostring(key), OPTION_NAMES)))
  elseif kind == "duration" then
    local seconds, message = require("moontide.duration").parse(value, what .. ": timeout")
    if not seconds then fail(message) end
    if seconds == 0 then fail(what .. ": timeout must be above 0") end
    out.timeout = seconds
  elseif kind == "name" then
    if type(value) ~= "string" then
      fail(("%s: after must be the name of a task, not a %s"):format(what, type(value)))
    end
    out.after = value
  else
    out.skip_on = names_of(value) or fail(what .. ": skip_on must be a list of reasons")
  end
end

--- Checks the options of a task; raises at the script's line.
---@param opts table
---@param what string how messages begin
---@return table options { timeout = seconds, after = name, skip_on = names }
return function(opts, what)
  local out = {}
  for key, value in pairs(opts) do check_option(key, value, what, out) end
  return out
end
