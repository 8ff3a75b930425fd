--- `moontide drain`: asks a running process to shut down, or what it would do then.
local cli = require "moontide.cli"
local json = require "moontide.json"
local remote = require "moontide.cli.remote"
local show = require "moontide.cli.show"
local text_of = require "moontide.text"
local words = require "moontide.cli.words"

local M = {}

local HELP = [[
usage: moontide drain [NAME|PATH|PID] (--dry | --reason TEXT) [options]

Asks a process to shut down, as SIGTERM does, with a reason that stands in its log.

options:
  --reason TEXT  why; goes into the log of what was done by whom
  --dry          only show what would happen: the phases and their budgets
  --timeout T    how long to wait for the answer, default 10s
  --json         print the plan as JSON
  --dir DIR      where to look for the process
  -h, --help     print this

]] .. remote.TARGET_HELP .. [[

examples:
  moontide drain orders --dry
  moontide drain orders --reason "host goes down for a new kernel"

]] .. remote.CODES_HELP

local SPEC = {
  help = HELP, flags = { ["--dry"] = "dry", ["--json"] = "json" },
  values = { ["--reason"] = "reason", ["--timeout"] = "timeout", ["--dir"] = "dir" },
}

local function print_value(message, as_json)
  if as_json then return show.out(json.encode(message.plan or {}) .. "\n") end
  if message.text then show.out(text_of.line(message.text)) end
end

---@param args string[]
---@return integer code
function M.main(args)
  local values, code = words.read(SPEC, args)
  if not values then return code end
  local timeout, problem = words.seconds(values.timeout, "--timeout", 10)
  if not timeout then return cli.wrong(problem) end
  if values[2] then return cli.wrong(("drain takes one process, not also %q"):format(values[2])) end
  if not values.dry and (values.reason or "") == "" then
    return cli.wrong "drain needs --reason TEXT, which is logged (or --dry, to only look)"
  end
  local connection, hello, found = remote.open(values[1], values, timeout)
  if not connection then return hello end
  local outcome = connection:ask(
    { type = "drain", reason = values.reason, dry = values.dry or false },
    { timeout = timeout, on = {
      value = function(message) print_value(message, values.json) end,
      error = function(message) io.stderr:write(show.failure("stderr", message)) end,
    } })
  -- One that goes away behind what it was asked has done it.
  local code_of = outcome.status == "closed" and outcome.value and not values.dry and 0
  code = code_of or remote.code(found, connection, outcome)
  connection:close()
  return code
end

return M
