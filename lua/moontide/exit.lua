--- The ways out: os.exit, nothing left to do. And the exit codes. Errors that belong to nobody:
--- `uncaught`.

local core = require "moontide.core"

local M = {}

local function new_reason(kind, fields)
  return require("moontide.reason").new(kind, fields)
end

M.CLEAN, M.FAILED, M.INVALID = 0, 1, 78

--- The exit code of a reason: the configuration's, or the reason's own.
---@param reason tide.Reason
---@return integer
function M.for_reason(reason)
  local override = require("moontide.settings").reason(reason)
  return override and override.exit_code or reason.exit_code
end

--- The code for a script or configuration that is not valid.
---@return integer
function M.invalid_code()
  return require("moontide.config").get("exit_codes") == "seed" and M.FAILED or M.INVALID
end

-- ---- os.exit ------------------------------------------------------------------------------------

local native_exit = os.exit

local PARKED = "os.exit was called"

-- The value that ends code which asked for the exit and cannot be parked.
local Exit = { __tostring = function() return PARKED end }

--- Whether an error is only the end of a caller of os.exit, also as one sees it who awaited it.
function M.is_exit(err)
  if type(err) ~= "table" then return false end
  return getmetatable(err) == Exit or rawget(err, "reason") == PARKED
end

--- Ends the process of a stock interpreter, whose streams and handlers are its own.
function M.leave_process(code)
  core.log.flush(require("moontide.config").get("log.close_timeout"))
  native_exit(code)
end

--- Leaves by the one pipeline; with `shutdown.run_by_process_exit` off at once.
---@param reason tide.Reason
function M.leave(reason)
  local shutdown = require "moontide.shutdown"
  if require("moontide.config").get("shutdown.run_by_process_exit") or shutdown.is_running() then
    return shutdown:run(reason)
  end
  M.stop_at_once(reason)
end

--- Ends without a pipeline.
---@param reason tide.Reason
function M.stop_at_once(reason)
  require("moontide.shutdown"):pass(reason, M.for_reason(reason))
end

--- Ends the running code by an error that nobody counts as one.
function M.unwind()
  error(setmetatable({ kind = "exit" }, Exit), 0)
end

-- The caller does not continue: a task ends where it stands, other code (a callback, a plain
-- coroutine) is unwound by an error that nobody counts as one.
local function park()
  local t = require("moontide.task").current()
  if t and t.body == coroutine.running() and coroutine.isyieldable() then
    core.task.leave(PARKED)
  end
  M.unwind()
end

--- os.exit in a script: asks for a shutdown with this exit code. At the console it does so whatever
--- `shutdown.run_by_process_exit` says.
function M.request(code)
  if code == nil or code == true then code = 0 end
  if code == false then code = 1 end
  code = math.tointeger(code)
  if not code then error("os.exit: the code must be an integer or a boolean", 2) end
  if require("moontide.boot").main.described then M.unwind() end
  code = code & 255
  local console = package.loaded["moontide.console.guard"]
  local reason = console and console.reason_of_exit(code)
  if reason then
    require("moontide.shutdown"):run(reason)
  else
    M.leave(new_reason("exit", { code = code }))
  end
  park()
end

function M.install()
  os.exit = M.request
end

--- Gives os.exit back, if it is still ours.
function M.uninstall()
  if os.exit == M.request then os.exit = native_exit end
end

-- ---- nothing left to do -------------------------------------------------------------------------

M.held = 0 -- workers, run_until_terminated: each counts one

-- Whether something of the script still runs or could.
local function alive()
  if M.held > 0 then return true end
  if require("moontide.task").live_root() > 0 then return true end
  local http = package.loaded["moontide.http"]
  if http and http.has_listener() then return true end
  return core.host.script_alive()
end

local function on_idle()
  if core.state.get() ~= "ready" or alive() then return end
  M.leave(new_reason("script-end"))
  core.host.wake() -- the pump has had its turn, and the loop is about to block
end

--- From now on the end of all work is the end of the process.
function M.watch_idle()
  core.host.on_idle(on_idle)
  core.host.wake()
end

return M
