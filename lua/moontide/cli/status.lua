--- `moontide status`: a running process in one screen, at once or when it has reached a state.
local attach = require "moontide.cli.attach"
local cli = require "moontide.cli"
local client = require "moontide.cli.client"
local json = require "moontide.json"
local native = require "moontide.core.client"
local remote = require "moontide.cli.remote"
local show = require "moontide.cli.show"
local text_of = require "moontide.text"
local words = require "moontide.cli.words"

local M = {}

local HELP = [[
usage: moontide status [NAME|PATH|PID] [options]

Shows a running process in one screen: state, phases, checks, work in flight.

options:
  --wait=STATE   only when it is starting, ready, draining or stopped; also waits
                 for a process that is not there yet, or for the successor of one
                 that drains
  --timeout T    how long to wait: default 10s, with --wait 30s; then exit code 124
  --json         print it as JSON
  --dir DIR      where to look for the process
  -h, --help     print this

]] .. remote.TARGET_HELP .. [[

examples:
  moontide status
  moontide status orders --json
  moontide status orders --wait=ready --timeout=1m
  kubectl exec POD -- moontide status

]] .. remote.CODES_HELP

local SPEC = {
  help = HELP, flags = { ["--json"] = "json" },
  values = { ["--wait"] = "wait", ["--timeout"] = "timeout", ["--dir"] = "dir" },
}

local OVER = { draining = true, stopped = true }

-- Seconds between two looks for a process that is not there.
local LOOK_AGAIN = 0.1

local function check(values)
  if values[2] then return ("status takes one process, not also %q"):format(values[2]) end
  if not values.wait then return nil end
  local states = require("moontide.states").NAMES
  for _, state in ipairs(states) do
    if state == values.wait then return nil end
  end
  return require("moontide.suggest").unknown("state", values.wait, states)
end

local function print_status(message, as_json)
  local status = message.status or {}
  if as_json then return show.out(json.encode(status) .. "\n") end
  show.out(text_of.line(require("moontide.console.status.screen").text(status)))
end

-- ---- one look -----------------------------------------------------------------------------------

-- Of several the one that is not on its way out: its successor is here already.
local function newest(list)
  local left = {}
  for _, found in ipairs(list) do
    if not OVER[found.state] then left[#left + 1] = found end
  end
  return #left == 1 and left[1] or nil
end

-- The process, or the code and what to say when there is no use in looking again; nothing when
-- there is.
local function look(values)
  local list, message = attach.look(values[1], values.dir)
  if #list == 1 then return list[1] end
  if #list > 1 then
    local found = values.wait and newest(list)
    if found then return found end
    return nil, remote.USAGE, message
  end
  if values.wait == "stopped" then return nil, 0 end
  return nil, not values.wait and remote.NONE or nil, message
end

-- Asks a process that has been found; nothing when it has gone meanwhile.
local function ask(found, values, seconds)
  local connection, message = client.open(found.path)
  if not connection then return nil, message end
  local outcome = connection:ask(
    { type = "status", wait = values.wait, timeout = values.wait and seconds or nil },
    { timeout = seconds + (values.wait and 1 or 0) })
  return outcome, connection
end

-- What an outcome means: the code when it was the last, else what to say at the end.
local function judge(found, connection, outcome, values)
  local status = outcome.status
  if status == "ok" then
    print_status(outcome.value, values.json)
    return 0
  end
  local message = outcome.error and outcome.error.message
  if not values.wait or status == "signal" or status == "interrupted" or status == "refused" then
    if message then remote.complain(message) end
    if status == "late" and not values.json then show.out(connection.silence:report() or "") end
    return status == "refused" and remote.NONE or remote.code(found, connection, outcome)
  elseif status == "closed" then
    if values.wait == "stopped" then return 0 end
    if connection.refused then return remote.code(found, connection, outcome) end
    return nil, ("process %s has ended"):format(found.pid or "there")
  end
  local state = outcome.value and outcome.value.status and outcome.value.status.state
  return nil, message or state and ("process %s is %s"):format(found.pid or "there", state)
    or ("process %s does not answer"):format(found.pid or "there")
end

-- ---- until it is so -----------------------------------------------------------------------------

-- Looks once: the code, or nil and what is missing yet.
local function attempt(values, seconds)
  local found, code, message = look(values)
  if not found then
    if code and message then remote.complain(message) end
    return code, message
  end
  local outcome, connection = ask(found, values, seconds)
  if not outcome then
    if values.wait then return nil, connection end
    remote.complain(connection)
    return remote.NONE
  end
  code, message = judge(found, connection, outcome, values)
  connection:close()
  return code, message
end

-- Lets some time pass; a text is the signal that says to leave.
local function pause(seconds)
  local _, signal = native.wait(seconds, false)
  if signal == "TSTP" then
    native.stop()
    return nil
  end
  return (signal == "INT" or signal == "TERM" or signal == "HUP" or signal == "QUIT") and signal
end

local function wait_for(values, timeout)
  local deadline = native.now() + timeout
  local code, missing
  while true do
    code, missing = attempt(values, math.max(deadline - native.now(), 0))
    if code then return code end
    local left = deadline - native.now()
    if left <= 0 then break end
    local signal = pause(math.min(LOOK_AGAIN, left))
    if signal then return remote.code({}, {}, { status = "signal", signal = signal }) end
  end
  remote.complain(("not %s after %s: %s"):format(values.wait,
    require("moontide.duration").format(timeout), missing or "no answer"))
  return remote.LATE
end

---@param args string[]
---@return integer code
function M.main(args)
  local values, code = words.read(SPEC, args)
  if not values then return code end
  local timeout, problem = words.seconds(values.timeout, "--timeout", values.wait and 30 or 10)
  problem = problem or check(values)
  if problem then return cli.wrong(problem) end
  native.signals()
  return wait_for(values, timeout)
end

return M
