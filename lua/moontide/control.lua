--- The control socket: where other processes of the same user reach this one.
--
-- A Unix socket in a directory that nobody else can enter, named NAME-PID.sock, so that a name
-- finds its processes. Who connects is served by `control_serve.lua`, loaded by the first.

local core = require "moontide.core"
local config = require "moontide.config"
local files = require "moontide.control_files"
local native = require "moontide.core.control"
local task = require "moontide.task"

local write = core.log.write

local M = {
  --- What both sides of a takeover must agree on.
  PROTOCOL = 1,
}

native.on {
  accepted = function(...) require("moontide.control_serve").accepted(...) end,
}

--- The directory of the control sockets: `control.dir`, else in what systemd or the session gives,
--- else in /tmp.
---@return string
function M.directory()
  return files.directory(native.uid())
end

-- Whether other users are to reach it: `console.uids`.
local function shared()
  local uids = config.get "console.uids"
  return uids ~= nil and #uids > 0
end

-- A socket that has moved: the handle of the former one is there for a turn of the loop.
local function listen(directory, file)
  if M.path then
    native.unlisten()
    M.path = nil
    task.sleep(0.001)
  end
  return native.listen(directory, file, shared())
end

--- Opens this process's socket; again harmless. That it cannot is no reason not to serve. Opened
--- while the main chunk still runs, it moves when the settings then say something else.
---@async
function M.open()
  if not config.get "control.socket" then return end
  local directory, file = M.directory(), files.file(config.get "name", core.host.pid)
  local path = directory .. "/" .. file
  if M.path == path then return end
  local ok, _, message = listen(directory, file)
  if not ok then
    if M.failure == message then return end -- it was tried before, in a long start
    M.failure = message
    return write(2, "control", ("no control socket, so no takeover of this process and no console: "
      .. "%s (control.dir says where it goes, control.socket = false that there is none)"):format(
      message))
  end
  M.path = path
  write(0, "control", "control socket", "path", path)
end

--- The host has stopped in a program that goes on: nobody shall wait for answers that cannot come.
--- A process keeps its socket to the end, for its watchdog still answers beside it.
function M.leave()
  if core.host.mode == "process" then return end
  native.unlisten()
  M.path = nil
  local links = package.loaded["moontide.control_links"]
  for _, link in pairs(links and links.all() or {}) do
    if not link.on_forget then link:close() end
  end
end

--- The sockets of other processes of our name.
---@return { pid: integer, path: string }[]|nil
---@return string|nil message why nobody can be looked for
function M.others()
  local directory, list = M.directory(), {}
  local ok, name, message = native.directory(directory, shared(), false)
  if not ok and name == "ENOENT" then return list end
  if not ok then return nil, message end
  local title = files.title(config.get "name")
  for _, other in ipairs(files.list(directory)) do
    if other.name == title and other.pid ~= core.host.pid then list[#list + 1] = other end
  end
  return list
end

return M
