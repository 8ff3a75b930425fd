--- `moontide eval`: one piece of Lua in a running process.
local cli = require "moontide.cli"
local json = require "moontide.json"
local remote = require "moontide.cli.remote"
local show = require "moontide.cli.show"
local words = require "moontide.cli.words"

local M = {}

local HELP = [[
usage: moontide eval [NAME|PATH|PID] [options] SOURCE

Runs SOURCE in a running process and prints what it gives. What it prints itself
comes as it is printed. SOURCE may be - for standard input.

options:
  -f, --file FILE  the source is in a file
  --timeout T      how long it may run, default 30s
  --json           print the values as JSON, one a line
  --dir DIR        where to look for the process
  -h, --help       print this

]] .. remote.TARGET_HELP .. [[

examples:
  moontide eval 'tasks()'
  moontide eval orders 'collectgarbage "count"'
  moontide eval 4242 --timeout 2s -f probe.lua
  echo 'return 6 * 7' | moontide eval orders -

]] .. remote.CODES_HELP .. [[
Ctrl-C asks for an interruption; the fourth leaves without an answer.
]]

local SPEC = {
  help = HELP, flags = { ["--json"] = "json" },
  values = { ["-f"] = "file", ["--file"] = "file", ["--timeout"] = "timeout", ["--dir"] = "dir" },
}

-- How much longer than the evaluation the answer may take.
local GRACE = 5

local function read_file(path)
  local file, message = io.open(path, "rb")
  local text = file and file:read "a"
  if file then file:close() end
  if text then return text end
  return nil, message or ("%s: cannot be read"):format(path)
end

-- The source and the target that the words mean.
local function read_words(values)
  local count = #values
  if values.file then
    if count > 1 then return nil, "with --file there is no SOURCE" end
    local source, message = read_file(values.file)
    return source, message or values[1]
  end
  if count == 0 then return nil, "eval needs a SOURCE" end
  if count > 2 then
    return nil, ("eval takes at most NAME and SOURCE, not also %q"):format(values[3])
  end
  local source = values[count]
  if source == "-" then source = io.stdin:read "a" or "" end
  return source, count == 2 and values[1] or nil
end

local function print_value(message, as_json)
  if as_json then
    show.out(json.encode(message.json == nil and json.null or message.json) .. "\n")
  elseif message.text and message.text ~= "" and message.n ~= 0 then
    show.out(show.line(message.text))
  end
end

local function evaluate(connection, source, timeout, as_json)
  return connection:ask(
    { type = "eval", source = source, timeout = timeout, json = as_json or nil },
    {
      timeout = timeout + GRACE,
      interrupt = function() io.stderr:write "^C\n" end,
      on = {
        out = function(message) show.out(message.text) end,
        err = function(message) show.err(message.text) end,
        value = function(message) print_value(message, as_json) end,
        error = function(message) io.stderr:write(show.failure("stderr", message)) end,
      },
    })
end

---@param args string[]
---@return integer code
function M.main(args)
  local values, code = words.read(SPEC, args)
  if not values then return code end
  local timeout, problem = words.seconds(values.timeout, "--timeout", 30)
  if not timeout then return cli.wrong(problem) end
  local source, target = read_words(values)
  if not source then return cli.wrong(target) end
  local connection, hello, found = remote.open(target, values, timeout)
  if not connection then return hello end
  local outcome = evaluate(connection, source, timeout, values.json)
  if outcome.status == "incomplete" then
    remote.complain "the source is not finished"
  elseif outcome.status == "timeout" and not outcome.error then
    remote.complain(("the evaluation has taken longer than %g s"):format(timeout))
  end
  code = remote.code(found, connection, outcome)
  connection:close()
  return code
end

return M
