--- `moontide run`: reads the options by hand, since argparse would cost more than
--- all the rest of a start, and hands the script's path back to the program.
local cli = require("moontide.cli")
local config = require("moontide.config")
local core = require("moontide.core")
local options = require("moontide.lazy")("moontide.cli.run_options")

local M = {}

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
      io.stdout:write(options.HELP)
      return 0
    end
    local following, problem = options.read(argv, at)
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
