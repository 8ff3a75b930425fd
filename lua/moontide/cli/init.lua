--- The command line: which command is meant. `run` loads nothing but itself; every
--- other command is a module of its own: with argparse those that look at a script or a report,
--- without it those that speak to a running process.
local commands = require("moontide.lazy")("moontide.cli.commands")

local M = {}

--- What a wrong command line and an unusable script end with.
M.USAGE, M.CONFIG = 64, 78

---@type string|nil the command that is meant, once that is known
M.command = nil

--- Complains about the command line, and says whose help helps.
---@param message string
---@return integer code
function M.wrong(message)
  io.stderr:write("moontide: ", message, "\n", ("Try 'moontide %s--help'.\n"):format(
    M.command and M.command .. " " or ""))
  return M.USAGE
end

-- A word that is no command is a script when there is such a file; else it is more
-- likely a slip.
local function is_file(word)
  local file = io.open(word, "r")
  if file then file:close() end
  return file ~= nil
end

-- Commands have neither dots nor slashes in their names, paths do, and options are of `run`.
local function means_run(word)
  if word == "run" or word:find "^%-" or word:find "[./]" then return true end
  return not commands.is_command(word) and is_file(word)
end

--- Reads the command line.
---@param argv string[] argv[0] is the program
---@return integer|{ run: string } result an exit code, or the script to run
function M.main(argv)
  local first = argv[1]
  if first == nil then
    io.stderr:write(commands.help())
    return M.USAGE
  end
  if first == "--help" or first == "-h" or first == "help" then
    io.stdout:write(commands.help())
    return 0
  end
  if first == "--version" then first = "version" end
  -- Options of the init may stand before everything; `run` knows them.
  if means_run(first) then
    M.command = "run"
    return require("moontide.cli.run").main(argv, first == "run" and 2 or 1)
  end
  if not commands.is_command(first) then return M.wrong(commands.unknown(first)) end
  M.command = first
  return require("moontide.cli." .. first).main({ table.unpack(argv, 2) })
end

return M
