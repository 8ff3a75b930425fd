--- Who may do what: `off`, `inspect` (look, change nothing) or `eval` (run Lua), by user.

local config = require "moontide.config"
local native = require "moontide.core.control"
local most = require("moontide.settings").console_policy

local M = {}

--- What a user may do: this one, and root, what the settings allow; the others that `console.uids`
--- names, no more than that.
---@param uid integer
---@return "off"|"inspect"|"eval"
function M.of(uid)
  if uid == native.uid() or uid == 0 then return most() end
  for _, entry in ipairs(config.get "console.uids" or {}) do
    if entry.uid == uid then return most() == "eval" and entry.policy or most() end
  end
  return "off"
end

return M
