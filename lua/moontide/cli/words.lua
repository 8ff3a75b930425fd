--- The words of the commands that speak to a running process: options in any order, then or before
--- them the rest. By hand, since these commands run in containers that have no argparse.
local cli = require "moontide.cli"

local M = {}

---@class moontide.cli.Spec
---@field help string printed for --help
---@field flags table<string, string> option -> field that becomes true
---@field values table<string, string> option -> field that gets the next word

local function known(spec)
  local names = { "--help" }
  for name in pairs(spec.flags) do names[#names + 1] = name end
  for name in pairs(spec.values) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- Reads the option at `i`; returns the place behind it, or nil and what is wrong.
local function read_option(spec, args, i, values)
  local name, value = args[i]:match "^(%-%-[^=]+)=(.*)$"
  name = name or args[i]
  local field = spec.values[name]
  if field then
    if not value then
      i = i + 1
      value = args[i]
    end
    if not value then return nil, ("option %s needs a value"):format(name) end
    values[field] = value
  elseif not spec.flags[name] then
    return nil, require("moontide.suggest").unknown("option", name, known(spec))
  elseif value then
    return nil, ("option %s takes no value"):format(name)
  else
    values[spec.flags[name]] = true
  end
  return i + 1
end

--- Reads the words of a command.
---@param spec moontide.cli.Spec
---@param args string[]
---@return table|nil values by field; the words that are no options are its list
---@return integer|nil code what to exit with when there are no values
function M.read(spec, args)
  local values, i, only_words = {}, 1, false
  while args[i] do
    local word = args[i]
    if only_words or word == "-" or word:sub(1, 1) ~= "-" then
      values[#values + 1] = word
      i = i + 1
    elseif word == "--" then
      only_words, i = true, i + 1
    elseif word == "--help" or word == "-h" then
      io.stdout:write(spec.help)
      return nil, 0
    else
      local following, problem = read_option(spec, args, i, values)
      if not following then return nil, cli.wrong(problem) end
      i = following
    end
  end
  return values
end

--- Seconds of an option's text; a bare number is seconds.
---@param text string|nil
---@param name string the option
---@param default number|nil
---@return number|nil seconds
---@return string|nil problem
function M.seconds(text, name, default)
  if not text then return default end
  return require("moontide.duration").parse(tonumber(text) or text, name)
end

return M
