--- Which signal asks for what. The core delivers them; here is what they mean.

local core = require "moontide.core"
local fail = require("moontide.site").fail
local reasons = require "moontide.reason"

local write = core.log.write

local M = {}

local handlers = {} -- name -> function of the script
local stopping = { SIGTERM = true, SIGINT = true }
local RESERVED = {
  SIGTERM = "it shuts the process down; register a task or a hook with tide.shutdown",
  SIGINT = "it shuts the process down; register a task or a hook with tide.shutdown",
  SIGQUIT = "it writes the state dump", SIGUSR1 = "it reopens the log file",
}

local function stop(name, pid, uid, nth)
  local shutdown = require "moontide.shutdown"
  if name == "SIGINT" and nth >= 3 then
    write(3, "lifecycle", "third SIGINT: the process ends at once", "signal", name, "pid", pid)
    return core.host.exit(130)
  end
  if name == "SIGINT" and nth == 2 and shutdown.is_running() then
    write(2, "lifecycle", "second SIGINT: skipping to the phases that always run",
      "signal", name, "pid", pid)
    return shutdown.force("forced by a second SIGINT")
  end
  shutdown:run(reasons.new("process-terminate", { signal = name, pid = pid, uid = uid }))
end

-- A handler of the script is a task of the root scope: it may await.
local function call(name, fn)
  local task = require "moontide.task"
  local reload = name == "SIGHUP" and core.notify.active() and require "moontide.systemd"
  if reload then reload.reloading() end
  task.root:start({
    name = "handler of " .. name, kind = "signal handler",
    on_end = reload and function() reload.ready() end or nil,
  }, fn, name)
end

local actions = {
  SIGQUIT = function() require("moontide.dump").write("SIGQUIT") end,
  SIGUSR1 = function()
    local ok, message = core.log.reopen()
    if ok == nil then write(2, "log", "log file not reopened: " .. tostring(message)) end
  end,
  SIGHUP = function(pid)
    write(1, "lifecycle", "SIGHUP ignored: no handler is set", "signal", "SIGHUP", "pid", pid)
  end,
}

--- A signal has arrived; called by the core.
---@param name string
---@param pid integer of the sender; 0: the kernel
---@param nth integer how often it has come
function M.dispatch(name, _, pid, uid, nth)
  if stopping[name] then return stop(name, pid, uid, nth) end
  local fn = handlers[name]
  if fn then return call(name, fn) end
  if actions[name] then return actions[name](pid) end
end

--- Sets what a signal of the script's own choice does; nil takes the handler away.
---@param name string "SIGHUP"
---@param fn fun(name: string)|nil runs as a task
---@return true|nil
---@return string|nil message for a signal that the platform lacks or that cannot be caught
function M.on_signal(name, fn)
  if type(name) ~= "string" then
    fail(("tide.on_signal: a signal's name is wanted, not a %s"):format(type(name)))
  end
  if fn ~= nil and type(fn) ~= "function" then
    fail(("tide.on_signal(%q): a function is wanted, not a %s"):format(name, type(fn)))
  end
  if RESERVED[name] then
    fail(("tide.on_signal: %s is taken: %s"):format(name, RESERVED[name]))
  end
  if fn then
    local ok, message = core.signals.watch(name)
    if not ok then return nil, message end
  elseif name ~= "SIGHUP" then
    core.signals.unwatch(name)
  end
  handlers[name] = fn
  return true
end

-- ---- process hooks, for a stock interpreter or an embedding program -----------------------------

local installed -- list of names that we watch, nil: nothing installed

local DEFAULT = { "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1" }

--- Watches signals and takes over os.exit. Idempotent; touches nothing else.
---@param names string[]|nil signals that shut down, default SIGTERM and SIGINT
function M.install_process_hooks(names)
  if installed then return end
  installed = {}
  for _, name in ipairs(names or {}) do stopping[name] = true end
  -- A process of the host's own has the usual ones, and os.exit, from its start on.
  local owned = core.host.mode == "process"
  for _, list in ipairs { owned and {} or DEFAULT, names or {} } do
    for _, name in ipairs(list) do
      local ok, message = core.signals.watch(name)
      if ok then
        installed[#installed + 1] = name
      else
        write(0, "lifecycle", "signal skipped: " .. tostring(message), "signal", name)
      end
    end
  end
  if not owned then require("moontide.exit").install() end
end

--- Gives back what install_process_hooks took, and nothing else. Idempotent.
function M.remove_process_hooks()
  if not installed then return end
  for _, name in ipairs(installed) do core.signals.unwatch(name) end
  installed = nil
  if core.host.mode ~= "process" then require("moontide.exit").uninstall() end
end

return M
