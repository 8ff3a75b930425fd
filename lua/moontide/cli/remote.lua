--- What the commands that speak to a running process share: from the words to a connection, from
--- the end of a request to an exit code.
local attach = require "moontide.cli.attach"
local client = require "moontide.cli.client"
local native = require "moontide.core.client"

local M = {
  --- Exit codes beside 0.
  ERROR = 1, USAGE = 64, NONE = 69, LATE = 124, INTERRUPTED = 130,
}

--- What help texts say of the target and of exit codes.
M.TARGET_HELP = [[
The process is named by its NAME, its PID, or the PATH of its socket; without any
it is the only one there is. It is looked for in control.dir or RUNTIME_DIRECTORY
where the environment has one of them, else in XDG_RUNTIME_DIR, /tmp/moontide-UID,
and where systemd puts units with a RuntimeDirectory=.
]]
M.CODES_HELP = [[
Exit codes: 0 done, 1 failed, 64 wrong command line or several processes, 69 no
such process, or it has gone away, 124 out of time, 130 interrupted.
]]

---@param text string
function M.complain(text)
  io.stderr:write("moontide: ", text, "\n")
end

--- The end of waiting for somebody: says why and gives the exit code.
---@param found moontide.cli.Found
---@param connection moontide.cli.Client
---@param outcome moontide.cli.Outcome
---@return integer code
function M.code(found, connection, outcome)
  local status = outcome.status
  if status == "ok" then
    return 0
  elseif status == "closed" then
    M.complain(connection.refused
      or ("process %s has closed the connection"):format(found.pid or "there"))
    return M.NONE
  elseif status == "late" then
    M.complain(("process %s has not answered in time"):format(found.pid or "there"))
    return M.LATE
  elseif status == "timeout" then
    return M.LATE
  elseif status == "cancelled" or status == "interrupted" or status == "left" then
    return M.INTERRUPTED
  elseif status == "signal" then
    return 128 + (({ HUP = 1, QUIT = 3, TERM = 15 })[outcome.signal] or 2)
  end
  return M.ERROR
end

--- Connects to a process that has been found, and says hello.
---@param found moontide.cli.Found
---@param timeout number|nil
---@return moontide.cli.Client|nil
---@return integer|table hello or the exit code
function M.connect(found, timeout)
  local connection, message = client.open(found.path)
  if not connection then
    M.complain(message)
    return nil, M.NONE
  end
  local outcome = connection:ask({ type = "hello", want = "console" }, { timeout = timeout })
  local hello = outcome.hello
  if outcome.status == "ok" and hello then
    connection.state = hello.state
    return connection, hello
  end
  if outcome.error then M.complain(outcome.error.message) end
  local code = outcome.status == "refused" and M.NONE or M.code(found, connection, outcome)
  connection:close()
  return nil, code
end

--- Finds and connects; says what is wrong.
---@param target string|nil
---@param values { dir: string|nil }
---@param timeout number|nil for the hello
---@return moontide.cli.Client|nil
---@return integer|table hello or the exit code
---@return moontide.cli.Found|nil
function M.open(target, values, timeout)
  native.signals()
  local found, code, message = attach.find(target, values.dir)
  if not found then
    M.complain(message)
    return nil, code
  end
  local connection, hello = M.connect(found, timeout)
  return connection, hello, found
end

return M
