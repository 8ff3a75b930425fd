--- `moontide eval`: one piece of Lua in a running process.
local cli = require "moontide.cli"
local json = require "moontide.json"
local native = require "moontide.core.client"
local remote = require "moontide.cli.remote"
local show = require "moontide.cli.show"
local text_of = require "moontide.text"
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

-- What is wrong with the words; nil: nothing.
local function check(values)
  local most = values.file and 1 or 2
  if not values.file and not values[1] then return "eval needs a SOURCE" end
  if not values[most + 1] then return nil end
  return values.file and ("with --file there is no SOURCE: %q"):format(values[2])
    or ("eval takes at most NAME and SOURCE, not also %q"):format(values[3])
end

local function read_file(path)
  local file, message = io.open(path, "rb")
  local text = file and file:read "a"
  if file then file:close() end
  if text then return text end
  remote.complain(message or ("%s: cannot be read"):format(path))
  return nil, remote.USAGE
end

-- All of standard input; a person may press Ctrl-C instead.
local function read_stdin()
  local pieces = {}
  while true do
    local input, signal = native.wait(nil, true)
    if signal and signal ~= "WINCH" and signal ~= "CONT" then
      return nil, remote.code({}, {}, { status = "signal", signal = signal })
    end
    local text = input and native.read()
    if input and not text then return table.concat(pieces) end
    pieces[#pieces + 1] = text or nil
  end
end

-- The source that the words mean, or nil and an exit code.
local function source_of(values)
  if values.file then return read_file(values.file) end
  local source = values[#values]
  if source == "-" then return read_stdin() end
  return source
end

local function print_value(message, as_json)
  if as_json then
    local values = message.n == 1 and { message.json } or message.json or {}
    for _, value in ipairs(values) do show.out(json.encode(value) .. "\n") end
  elseif message.text and message.text ~= "" and message.n ~= 0 then
    show.out(text_of.line(message.text))
  end
end

-- What a trace that the source begins has to show until the source has ended.
local function show_trace(message)
  if message.event == "trace" then show.out(text_of.line(message.text or "")) end
end

local function evaluate(connection, source, timeout, as_json)
  connection.on_event = show_trace
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
  problem = problem or check(values)
  if problem then return cli.wrong(problem) end
  native.signals()
  local source
  source, code = source_of(values)
  if not source then return code end
  local target = (values.file or values[2]) and values[1] or nil
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
