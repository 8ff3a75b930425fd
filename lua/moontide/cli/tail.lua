--- `moontide tail`: the log of a running process, as it is written.
local cli = require "moontide.cli"
local json = require "moontide.json"
local remote = require "moontide.cli.remote"
local show = require "moontide.cli.show"
local text_of = require "moontide.text"
local words = require "moontide.cli.words"

local M = {}

local LEVELS = { "trace", "debug", "info", "warn", "error" }

local HELP = [[
usage: moontide tail [NAME|PATH|PID] [options]

Prints the log records of a running process from now on, until Ctrl-C, the end of
the process, or --timeout; then its exit report.

options:
  --level LEVEL  the least: trace, debug, info (the default), warn or error; also
                 below what the process itself writes
  --timeout T    leave after this time, with code 0
  --json         print each record as JSON, one a line
  --dir DIR      where to look for the process
  -h, --help     print this

]] .. remote.TARGET_HELP .. [[

examples:
  moontide tail orders
  moontide tail --level warn --json orders | jq .msg

]] .. remote.CODES_HELP

local SPEC = {
  help = HELP, flags = { ["--json"] = "json" },
  values = { ["--level"] = "level", ["--timeout"] = "timeout", ["--dir"] = "dir" },
}

-- What stands before the fields, in this order.
local FIRST = { "time", "level", "component", "msg" }

local function shown(value)
  if type(value) == "string" then
    return value:find "[%s\"=%c]" and json.encode(value) or value
  end
  return type(value) == "table" and json.encode(value) or tostring(value)
end

--- A record as a line for a person.
---@param record table<string, any>
---@return string
function M.line(record)
  local known, names = {}, {}
  local head = {}
  for _, name in ipairs(FIRST) do
    known[name] = true
    if record[name] ~= nil then head[#head + 1] = tostring(record[name]) end
  end
  for name in pairs(record) do
    if not known[name] then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    head[#head + 1] = ("%s=%s"):format(name, shown(record[name]))
  end
  return table.concat(head, " ") .. "\n"
end

-- Prints; remembers when nobody reads any more.
local function printer(as_json)
  local state = {}
  function state.event(message)
    local text
    if message.event == "log" then
      text = as_json and json.encode(message.record) .. "\n" or M.line(message.record)
    elseif message.event == "missed" then
      remote.complain(("%d records were missed: they came faster than they are read"):format(
        message.records))
    elseif message.event == "report" and not as_json then
      text = text_of.line(message.text or "")
      state.reported = true
    end
    if text and not show.out(text) then state.unread = true end
  end
  return state
end

local function check(values)
  if values[2] then return ("tail takes one process, not also %q"):format(values[2]) end
  if not values.level then return nil end
  for _, level in ipairs(LEVELS) do
    if level == values.level then return nil end
  end
  return require("moontide.suggest").unknown("level", values.level, LEVELS)
end

-- The code of a tail that has come to its end.
local function code_of(found, connection, outcome, state)
  if outcome.status == "late" or state.unread then return 0 end
  local ended = state.reported or connection.state == "stopped"
  if ended and (outcome.status == "closed" or outcome.status == "cancelled") then return 0 end
  if outcome.error then io.stderr:write(show.failure("stderr", outcome.error)) end
  return remote.code(found, connection, outcome)
end

---@param args string[]
---@return integer code
function M.main(args)
  local values, code = words.read(SPEC, args)
  if not values then return code end
  local timeout, problem = words.seconds(values.timeout, "--timeout")
  problem = problem or check(values)
  if problem then return cli.wrong(problem) end
  local connection, hello, found = remote.open(values[1], values, timeout)
  if not connection then return hello end
  local state = printer(values.json)
  connection.on_event = state.event
  local outcome = connection:ask({ type = "tail", level = values.level or "info" }, {
    timeout = timeout, on = { event = state.event },
    watch = function() return state.unread and "left" or nil end,
  })
  code = code_of(found, connection, outcome, state)
  connection:close()
  return code
end

return M
