--- `moontide run`: reads the options by hand, since argparse would cost more than
--- all the rest of a start, and hands the script's path back to the program.
local cli = require("moontide.cli")
local config = require("moontide.config")
local core = require("moontide.core")

local M = {}

local HELP = [[
usage: moontide [run] [options] app.lua [arguments]

Runs a script: startup, serve until told to stop, shutdown. What follows the
script is the script's: arg[1], arg[2], ...

options:
  --name NAME            what the process is called in metrics and the console
  --set KEY=VALUE        a setting, above the script's and the environment's;
                         may be repeated
  --startup-timeout T    total of the startup, the same as --set startup.timeout=T
  --shutdown-timeout T   total of the shutdown
  --init=auto|on|off     be an init for the process (auto: when it is PID 1)
  --help                 print this

examples:
  moontide app.lua
  moontide run --set manage.port=9000 --set log.level=debug app.lua --verbose
  moontide --init=on --shutdown-timeout 25s app.lua

Exit codes: 0 clean, 1 failed or a total was exceeded, 64 wrong command line,
78 the script or its settings cannot be used, 130 forced by SIGINT.
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

local function unknown_option(word)
  local names = { "--help" }
  for name in pairs(OPTIONS) do names[#names + 1] = name end
  table.sort(names)
  return require("moontide.suggest").unknown("option", word, names)
end

--- Reads one option at `argv[at]`; returns the place after it, or nil and what is
--- wrong.
local function read_option(argv, at)
  local word = argv[at]
  local name, value = word:match("^(%-%-[^=]+)=(.*)$")
  name = name or word
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

--- What the script sees as `arg`, and the name it has when nobody gives it one.
local function hand_over(argv, at)
  local path, args = argv[at], {}
  table.move(argv, at + 1, #argv, 1, args)
  core.host.args = args
  arg = table.move(args, 1, #args, 1, { [0] = path }) -- luacheck: globals arg
  config.set_default("name", (path:match("([^/]*)$"):gsub("%.lua$", "")))
end

--- Reads the options from `argv[at]` on.
---@param argv string[]
---@param at integer
---@return integer|{ run: string }
function M.main(argv, at)
  while argv[at] and argv[at]:sub(1, 1) == "-" and argv[at] ~= "-" do
    if argv[at] == "--" then
      at = at + 1
      break
    end
    if argv[at] == "--help" or argv[at] == "-h" then
      io.stdout:write(HELP)
      return 0
    end
    local following, problem = read_option(argv, at)
    if not following then return cli.wrong(problem) end
    at = following
  end
  -- `moontide --init=on run app.lua`
  if argv[at] == "run" and argv[1] ~= "run" then return M.main(argv, at + 1) end
  if not argv[at] then return cli.wrong("no script is named") end
  hand_over(argv, at)
  return { run = argv[at] }
end

return M
