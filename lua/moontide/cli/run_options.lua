--- The options of `moontide run`.
local config = require("moontide.config")

local M = {}

M.HELP = [[
usage: moontide [run] [options] app.lua [arguments]

Runs a script: startup, serve until told to stop, shutdown. What follows the
script is the script's: arg[1], arg[2], ...

options:
  --name NAME            what the process is called in metrics and the console
  --set KEY=VALUE        a setting, above the script's and the environment's;
                         may be repeated
  --startup-timeout T    total of the startup, the same as --set startup.timeout=T
  --shutdown-timeout T   total of the shutdown
  --takeover[=required|=PID]
                         follow the process of the same name: get its
                         listening sockets, and serve once ready, while it
                         drains. Nobody there: a plain start; with required,
                         or a PID, exit code 69
  --init=auto|on|off     be an init for the process (auto: when it is PID 1)
  --help                 print this

examples:
  moontide app.lua
  moontide run --set manage.port=9000 --set log.level=debug app.lua --verbose
  moontide --init=on --shutdown-timeout 25s app.lua
  moontide --takeover app.lua             instead of the one that runs

Exit codes: 0 clean, 1 failed or a total was exceeded, 64 wrong command line,
69 the takeover was refused, 78 the script or its settings cannot be used,
130 forced by SIGINT.
]]

local INIT_MODES = { auto = true, on = true, off = true }

local function set(pair)
  local key, value = pair:match("^([^=]+)=(.*)$")
  if not key then return ("--set takes KEY=VALUE, not \"%s\""):format(pair) end
  config.override(key, value, "command line --set " .. key)
end

--- Option -> what it does with its value; a text is what is wrong.
local OPTIONS = {
  ["--set"] = set,
  ["--name"] = function(value) config.override("name", value, "command line --name") end,
  ["--startup-timeout"] = function(value)
    config.override("startup.timeout", value, "command line --startup-timeout")
  end,
  ["--shutdown-timeout"] = function(value)
    config.override("shutdown.timeout", value, "command line --shutdown-timeout")
  end,
  ["--init"] = function(value) -- acted on before there was any Lua
    if not INIT_MODES[value] then
      return ("--init takes auto, on or off, not \"%s\""):format(value)
    end
  end,
}

-- Its value, if it has one, stands behind the `=`: the next word is the script.
local function takeover(value)
  local mode = value or "auto"
  if mode ~= "auto" and mode ~= "required" then mode = math.tointeger(tonumber(value)) end
  if not mode then
    return ("--takeover takes required or the number of a process, not \"%s\""):format(value)
  end
  require("moontide.takeover").mode = mode
end

local function unknown_option(word)
  local names = { "--help", "--takeover" }
  for name in pairs(OPTIONS) do names[#names + 1] = name end
  table.sort(names)
  return require("moontide.suggest").unknown("option", word, names)
end

--- Reads one option.
---@param argv string[]
---@param at integer its place
---@return integer|nil following the place after it
---@return string|nil problem
function M.read(argv, at)
  local word = argv[at]
  local name, value = word:match("^(%-%-[^=]+)=(.*)$")
  name = name or word
  if name == "--takeover" then
    local problem = takeover(value)
    return not problem and at + 1 or nil, problem
  end
  local option = OPTIONS[name]
  if not option then return nil, unknown_option(name) end
  if not value then
    at = at + 1
    value = argv[at]
    if not value then return nil, ("option %s needs a value"):format(name) end
  end
  local problem = option(value)
  if problem then return nil, problem end
  return at + 1
end

return M
