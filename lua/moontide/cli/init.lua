--- The command line: which command is meant. `run` loads nothing but itself; every
--- other command is a module of its own, with argparse.
local M = {}

--- What a wrong command line and an unusable script end with.
M.USAGE, M.CONFIG = 64, 78

--- Commands in the order of the help, each with its module and a line of summary.
M.commands = {
  { "run", "run a script; `moontide app.lua` is the same" },
  { "check", "load a script without running it: errors, settings, budgets" },
  { "plan", "print the order of the phases and their budgets" },
  { "why", "say why one phase runs before another" },
  { "graph", "draw the phases for Mermaid or Graphviz" },
  { "healthcheck", "ask a running process whether it is ready" },
  { "version", "print the version" },
}

local HEAD = [[
moontide: a lifecycle host scripted in Lua

usage: moontide [run] [options] app.lua [arguments]
       moontide COMMAND [options]

commands:
]]

local TAIL = [[

examples:
  moontide app.lua                         run it until it is told to stop
  moontide check --grace 60 --prestop 10 app.lua
  moontide plan app.lua

`moontide COMMAND --help` says more. Exit codes: 0 done, 1 failed, 64 wrong
command line, 78 the script or its settings cannot be used.
]]

--- The help of the program as a whole.
---@return string
function M.help()
  local lines = {}
  for _, command in ipairs(M.commands) do
    lines[#lines + 1] = ("  %-12s %s"):format(command[1], command[2])
  end
  return HEAD .. table.concat(lines, "\n") .. "\n" .. TAIL
end

--- Complains about the command line.
---@param message string
---@return integer code
function M.wrong(message)
  io.stderr:write("moontide: ", message, "\n", "Try 'moontide --help'.\n")
  return M.USAGE
end

local function is_command(word)
  for _, command in ipairs(M.commands) do
    if command[1] == word then return true end
  end
  return false
end

--- A word that is no command is a script when it looks like a path; else it is more
--- likely a slip than a file.
local function is_script(word)
  if word:find("[./]") then return true end
  local file = io.open(word, "r")
  if file then file:close() end
  return file ~= nil
end

local function unknown_command(word)
  local names = {}
  for i, command in ipairs(M.commands) do names[i] = command[1] end
  return M.wrong(require("moontide.suggest").unknown("command", word, names))
end

--- Reads the command line.
---@param argv string[] argv[0] is the program
---@return integer|{ run: string } result an exit code, or the script to run
function M.main(argv)
  local first = argv[1]
  if first == nil then
    io.stderr:write(M.help())
    return M.USAGE
  end
  if first == "--help" or first == "-h" or first == "help" then
    io.stdout:write(M.help())
    return 0
  end
  if first == "--version" then first = "version" end
  -- Options of the init may stand before everything; `run` knows them.
  if first == "run" or first:sub(1, 1) == "-" or not is_command(first) and is_script(first) then
    return require("moontide.cli.run").main(argv, first == "run" and 2 or 1)
  end
  if not is_command(first) then return unknown_command(first) end
  return require("moontide.cli." .. first).main({ table.unpack(argv, 2) })
end

return M
