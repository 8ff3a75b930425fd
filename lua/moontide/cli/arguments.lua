--- What the commands with argparse share: a parser, and a script that was looked at.
local cli = require("moontide.cli")

local M = {}

--- Breaks a text into lines of at most 78 columns.
local function wrap(text)
  local lines, line = {}, ""
  for word in text:gmatch("%S+") do
    if #line + #word + 1 > 78 and line ~= "" then
      lines[#lines + 1], line = line, word
    else
      line = line == "" and word or line .. " " .. word
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

--- A parser that leaves the process alone: its own help and errors call os.exit.
---@param command string
---@param summary string
---@param examples string[]
---@return table parser of argparse
function M.parser(command, summary, examples)
  local ok, argparse = pcall(require, "argparse")
  if not ok then
    error(("moontide %s needs argparse (Debian: lua-argparse); run, and what speaks to a running "
      .. "process, does not"):format(command), 0)
  end
  local epilog = "examples:\n  " .. table.concat(examples, "\n  ")
  return argparse("moontide " .. command, wrap(summary), epilog):add_help(false)
end

--- Adds what every command that looks at a script takes.
---@param parser table of M.parser
---@return table parser the same
function M.add_script(parser)
  parser:argument("script", "The script, app.lua.")
  parser:option("--set", "A setting, above the script's and the environment's.")
    :argname("KEY=VALUE"):count("*")
  return parser
end

local function add_help(parser)
  parser:flag("-h --help", "Print this.")
end

--- Parses; prints the help when that is asked for.
---@param parser table
---@param args string[]
---@return table|nil values
---@return integer|nil code what to exit with when there are no values
function M.parse(parser, args)
  add_help(parser)
  for _, word in ipairs(args) do
    if word == "--" then break end
    if word == "-h" or word == "--help" then
      io.stdout:write(parser:get_help(), "\n")
      return nil, 0
    end
  end
  local ok, values = parser:pparse(args)
  if ok then return values end
  io.stderr:write("moontide: ", values, "\n", parser:get_usage(), "\n")
  return nil, cli.USAGE
end

local function invalid_code()
  return require("moontide.config").get("exit_codes") == "seed" and 1 or cli.CONFIG
end

--- Prints errors, a line each.
---@param errors string[]
---@return integer code
function M.refuse(errors)
  for _, message in ipairs(errors) do io.stderr:write("moontide: ", message, "\n") end
  return invalid_code()
end

--- Loads the script that the command line names, without starting it.
---@param values table of `parse`
---@return moontide.App|nil
---@return integer|nil code
function M.describe(values)
  local config = require("moontide.config")
  for _, pair in ipairs(values.set or {}) do
    local key, value = pair:match("^([^=]+)=(.*)$")
    if not key then
      return nil, cli.wrong(("--set takes KEY=VALUE, not \"%s\""):format(pair))
    end
    config.override(key, value, "command line --set " .. key)
  end
  config.set_default("name", (values.script:match("([^/]*)$"):gsub("%.lua$", "")))
  local app, errors = require("moontide.boot").describe(values.script)
  if not app then return nil, M.refuse(errors) end
  return app
end

--- What a command needs before it can begin: its options, and the script they name.
---@param parser table of M.parser
---@param args string[]
---@return table|nil app as boot.describe makes it
---@return table|integer values the options, or the exit code when there is no app
function M.app(parser, args)
  local values, code = M.parse(parser, args)
  if not values then return nil, code end
  local app
  app, code = M.describe(values)
  if not app then return nil, code end
  return app, values
end

return M
