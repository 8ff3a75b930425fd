--- Who may do what: `off`, `inspect` (look, change nothing) or `eval` (run Lua), by user.

local config = require "moontide.config"
local native = require "moontide.core.control"

local M = {}

-- Read when the module is loaded: a script can change the environment later.
local production = os.getenv "MOONTIDE_ENV" == "production"

--- What the settings allow anybody.
---@return "off"|"inspect"|"eval"
function M.most()
  return config.get "console.policy" or (production and "inspect" or "eval")
end

--- What a user may do: this one, and root, what the settings allow; the others that `console.uids`
--- names, no more than that.
---@param uid integer
---@return "off"|"inspect"|"eval"
function M.of(uid)
  if uid == native.uid() or uid == 0 then return M.most() end
  for _, entry in ipairs(config.get "console.uids" or {}) do
    if entry.uid == uid then return M.most() == "eval" and entry.policy or M.most() end
  end
  return "off"
end

return M
