--- What systemd is told. Loaded only when there is somebody to notify.

local core = require "moontide.core"
local task = require "moontide.task"

local send = core.notify.send

local M = {}

local function microseconds(seconds)
  return ("%d"):format(math.max(0, math.floor(seconds * 1e6)))
end

--- A phase begins, or the like: progress, so the rest of the total may be asked for again.
---@param run moontide.Run
---@param text string
function M.status(run, text)
  local lines = "STATUS=" .. text
  if run.total_end then
    lines = lines .. "\nEXTEND_TIMEOUT_USEC=" .. microseconds(run.total_end - core.clock.now())
  end
  send(lines)
end

-- From the loop, so that a loop that stands still is noticed.
local function keep_alive(interval)
  while true do
    task.sleep(interval)
    send("WATCHDOG=1")
  end
end

--- Begins to answer the watchdog, each half interval; nothing without one.
---@param interval number|nil seconds; default: what the environment says
function M.watch(interval)
  interval = interval or core.notify.watchdog_interval()
  if interval <= 0 or M.watching then return end
  M.watching = true
  send("WATCHDOG=1")
  task.start({ name = "systemd watchdog", scope = task.pipeline, kind = "internal" }, keep_alive,
    interval)
end

--- A handler of SIGHUP begins; `ready` follows when it has ended.
function M.reloading()
  send(("RELOADING=1\nMONOTONIC_USEC=%d"):format(core.host.hrtime() // 1000))
end

--- The service is another process from now on, or (`pid` is ours) this one again.
---@param pid integer
function M.main_pid(pid)
  send(("MAINPID=%d"):format(pid))
end

function M.ready()
  send("READY=1\nSTATUS=ready\nWATCHDOG=1")
end

function M.stopping(reason, total)
  send(("STOPPING=1\nSTATUS=shutting down: %s\nEXTEND_TIMEOUT_USEC=%s"):format(tostring(reason),
    microseconds(total)))
end

return M
