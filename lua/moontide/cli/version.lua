--- `moontide version`.
local M = {}

local HELP = [[
usage: moontide version [--verbose]

Prints the version, with --verbose also those of Lua and libuv.

examples:
  moontide version
  moontide --version
]]

---@param args string[]
---@return integer code
function M.main(args)
  local core = require("moontide.core")
  local verbose = args[1] == "--verbose"
  if args[1] == "--help" or args[1] == "-h" then
    io.stdout:write(HELP)
    return 0
  end
  if args[1] and not verbose then
    return require("moontide.cli").wrong(("version takes no \"%s\""):format(args[1]))
  end
  io.stdout:write("moontide ", core.host.version, "\n")
  if verbose then
    io.stdout:write(_VERSION, "\n", "libuv ", require("luv").version_string(), "\n")
  end
  return 0
end

return M
