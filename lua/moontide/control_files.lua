--- Where control sockets are and what they are called: what a host and its clients agree on.

local config = require "moontide.config"
local core = require "moontide.core"

local M = {}

local function first_of(list)
  local first = list and list:match "^[^:]+"
  return first and first:sub(1, 1) == "/" and first or nil
end

--- The directory that the settings or systemd say.
---@return string|nil
function M.told()
  local set = config.get "control.dir"
  if set then return set end
  local base = first_of(os.getenv "RUNTIME_DIRECTORY")
  return base and base .. "/moontide"
end

--- That of the login session, if there is one.
---@return string|nil
function M.of_session()
  local base = first_of(os.getenv "XDG_RUNTIME_DIR")
  return base and base .. "/moontide"
end

--- Where they are when nobody says where.
---@param uid integer
---@return string
function M.of_last_resort(uid)
  return ("/tmp/moontide-%d"):format(uid)
end

--- Where a host of this environment puts its own.
---@param uid integer
---@return string
function M.directory(uid)
  return M.told() or M.of_session() or M.of_last_resort(uid)
end

--- A name as it stands in a file's.
---@param name string|nil
---@return string
function M.title(name)
  return ((name or "unnamed"):gsub("/", "_"))
end

---@param name string|nil
---@param pid integer
---@return string file
function M.file(name, pid)
  return ("%s-%d.sock"):format(M.title(name), pid)
end

---@class moontide.ControlFile
---@field name string with `_` for each `/`
---@field pid integer
---@field path string

--- The sockets in a directory, in the order of names and processes; empty when there is none.
---@param directory string
---@param kind "sock"|"oob"|nil default "sock"; "oob": those of the watchdogs
---@return moontide.ControlFile[]
function M.list(directory, kind)
  local list, pattern = {}, "^([^.].*)%-(%d+)%." .. (kind or "sock") .. "$"
  for _, file in ipairs(core.files.list(directory) or {}) do
    local name, pid = file:match(pattern) -- others are not ready yet
    pid = math.tointeger(tonumber(pid or ""))
    if pid then list[#list + 1] = { name = name, pid = pid, path = directory .. "/" .. file } end
  end
  table.sort(list, function(a, b)
    if a.name ~= b.name then return a.name < b.name end
    return a.pid < b.pid
  end)
  return list
end

--- The watchdog's socket, beside the control socket.
---@param path string of the control socket
---@return string
function M.beside(path)
  return path:gsub("%.sock$", "") .. ".oob"
end

--- Removes what a process that has died left: its socket, and the watchdog's beside it.
---@param path string of the control socket
function M.remove(path)
  os.remove(path)
  os.remove(M.beside(path))
end

return M
