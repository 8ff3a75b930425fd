--- Finding the process that a command means: by NAME, by PID, by the PATH of its socket, or the
--- only one there is.
local config = require "moontide.config"
local core = require "moontide.core"
local files = require "moontide.control_files"
local native = require "moontide.core.client"

local M = {
  --- Exit codes: the words do not say which process; there is none.
  USAGE = 64, NONE = 69,
}

---@class moontide.cli.Found : moontide.ControlFile
---@field state string|nil of the host, where it had to be asked for

-- ---- where to look ------------------------------------------------------------------------------

-- Whether files in there are to be trusted: a directory that anybody can make must be ours alone.
local function is_safe(directory)
  local control = require "moontide.core.control"
  return control.directory(directory, true, false) == true
end

-- `BASE/*/moontide`: what systemd makes for units with RuntimeDirectory=.
local function of_units(base)
  local list = {}
  for _, unit in ipairs(core.files.list(base) or {}) do
    local directory = ("%s/%s/moontide"):format(base, unit)
    if core.files.list(directory) then list[#list + 1] = directory end
  end
  table.sort(list)
  return list
end

-- The directories, and how to tell a person of them.
local function places(dir)
  config.load_env(core.host.environ())
  local told = dir or files.told()
  if told then return { told }, told end
  local uid = require("moontide.core.control").uid()
  local list, words = {}, {}
  local session = files.of_session()
  if session then
    local base = session:match "^(.*)/moontide$"
    list[1] = session
    table.move(of_units(base), 1, #of_units(base), 2, list)
    words = { session, base .. "/*/moontide" }
  end
  local last = files.of_last_resort(uid)
  if is_safe(last) then list[#list + 1] = last end
  words[#words + 1] = last
  for _, directory in ipairs(of_units "/run") do list[#list + 1] = directory end
  words[#words + 1] = "/run/*/moontide"
  return list, table.concat(words, ", ")
end

-- ---- who lives ----------------------------------------------------------------------------------

-- Whether somebody listens. A file that was left behind is removed: not while its process lives,
-- which has bound it and is about to listen.
local function is_live(found)
  local connection, name = native.connect(found.path)
  if connection then connection:close() end
  if name == "ECONNREFUSED" and not core.files.list("/proc/" .. found.pid) then
    files.remove(found.path)
  end
  return connection ~= nil or name == "EAGAIN"
end

-- All live ones that `fits` says yes to, once each: a directory may be there under two names.
local function live(directories, fits)
  local list, seen = {}, {}
  for _, directory in ipairs(directories) do
    for _, found in ipairs(files.list(directory)) do
      local key = found.name .. "-" .. found.pid
      if not seen[key] and fits(found) and is_live(found) then
        seen[key] = true
        list[#list + 1] = found
      end
    end
  end
  return list
end

-- ---- what to say --------------------------------------------------------------------------------

local function ask_states(list)
  for _, found in ipairs(list) do
    found.state = found.state or require("moontide.cli.client").state_of(found.path) or "no answer"
  end
end

local function several(list, what)
  ask_states(list)
  local lines = { ("%d processes %s; name one by its PID or the path of its socket:"):format(#list,
    what) }
  for _, found in ipairs(list) do
    lines[#lines + 1] = ("  %-7d %-10s %-20s %s"):format(found.pid, found.state, found.name,
      found.path)
  end
  return table.concat(lines, "\n")
end

local function none(target, directories, words)
  local all = live(directories, function() return true end)
  local what = target and ("no live process \"%s\""):format(target) or "no live process"
  local names = {}
  for i, found in ipairs(all) do names[i] = ("%s (%d)"):format(found.name, found.pid) end
  local others = #names > 0 and "; there is " .. table.concat(names, ", ") or ""
  for _, directory in ipairs(directories) do
    local list, message = core.files.list(directory)
    if not list and message:find "^EACCES" then
      others = ("%s; %s cannot be listed by you: name the path of the socket"):format(others,
        directory)
    end
  end
  return ("%s in %s%s (--dir says where else to look)"):format(what, words, others)
end

-- ---- finding ------------------------------------------------------------------------------------

local function by_path(path)
  local name, pid = path:match "([^/]*)%-(%d+)%.sock$"
  local found = { path = path, name = name or path, pid = math.tointeger(tonumber(pid or "")) }
  local connection, error_name, message = native.connect(path)
  if connection then
    found.pid = found.pid or select(2, connection:peer())
    connection:close()
    return { found }
  elseif error_name == "EAGAIN" then
    return { found }
  elseif error_name == "ECONNREFUSED" then
    return {}, ("%s: nobody listens: its process has died"):format(path)
  end
  return {}, ("%s: %s"):format(path, message)
end

--- Those that a target may mean.
---@param target string|nil NAME, PATH or PID
---@param dir string|nil
---@return moontide.cli.Found[]
---@return string message why there is none, or not only one
function M.look(target, dir)
  if target and target:find "/" then return by_path(target) end
  local directories, words = places(dir)
  local pid = target and math.tointeger(tonumber(target))
  local title = target and files.title(target)
  local function is_meant(found)
    return not target or found.name == title or found.pid == pid
  end
  local list = live(directories, is_meant)
  if #list == 0 then
    return list, require("moontide.cli.unopened").message(directories, is_meant)
      or none(target, directories, words)
  end
  if #list == 1 then return list, "" end
  return list, several(list, target and ("are called \"%s\""):format(target) or "live")
end

--- The one that a target means.
---@param target string|nil
---@param dir string|nil
---@return moontide.cli.Found|nil
---@return integer|nil code
---@return string|nil message
function M.find(target, dir)
  local list, message = M.look(target, dir)
  if #list == 1 then return list[1] end
  return nil, #list == 0 and M.NONE or M.USAGE, message
end

return M
