--- Where the process may keep files between its runs.
local M = {}

local function first_of(list)
  return list and list:match("^[^:]+")
end

--- `state_dir` of the configuration, else what systemd gives ($STATE_DIRECTORY), else the user's
--- own place for state, with the name of the process. Nothing is created.
---@return string? path nil when there is none
function M.path()
  local config = require "moontide.config"
  local set = config.get("state_dir") or first_of(os.getenv "STATE_DIRECTORY")
  if set and set ~= "" then return set end
  local state = os.getenv "XDG_STATE_HOME"
  if not state or state:sub(1, 1) ~= "/" then
    local home = os.getenv "HOME"
    if not home or home:sub(1, 1) ~= "/" then return nil end
    state = home .. "/.local/state"
  end
  local name = config.get("name") or require("moontide.core").host.name or "unnamed"
  return ("%s/moontide/%s"):format(state, name:gsub("/", "_"))
end

--- Makes a directory and those above it, for this user only.
---@param path string
---@return true? made
---@return string? message
function M.make(path)
  local mkdir = require("moontide.core").files.mkdir
  local at = path:sub(1, 1) == "/" and "/" or ""
  for part in path:gmatch("[^/]+") do
    at = at .. part
    local made, message = mkdir(at)
    if not made then return nil, message end
    at = at .. "/"
  end
  return true
end

return M
