--- The globals of a session: what is assigned stays here, what is not found here is a command of
--- the console, and else a global of the application.
--
-- Tables behind tables, no function: so completion sees the same without running anything.

local commands = require "moontide.console.commands"

local M = {}

local KEPT = 3

-- The commands, for this session.
local function bound(session)
  local bound_commands = {}
  for _, command in ipairs(commands.list) do
    local fn = command.fn
    bound_commands[command.name] = function(...) return fn(session, ...) end
  end
  return setmetatable(bound_commands, { __index = _G })
end

--- A new environment. `tide` is in it, unless the application has a global of that name.
---@param session moontide.console.Session
---@return table
function M.new(session)
  local env = {}
  if rawget(_G, "tide") == nil then env.tide = require "moontide" end
  return setmetatable(env, { __index = bound(session) })
end

--- Keeps a result: `_` and `_1` are the last one, `_2` and `_3` those before.
---@param env table
---@param value any
function M.keep(env, value)
  for i = KEPT, 2, -1 do rawset(env, "_" .. i, rawget(env, "_" .. i - 1)) end
  rawset(env, "_1", value)
  rawset(env, "_", value)
end

--- Keeps an error, as `_err`.
---@param env table
---@param err any
function M.keep_error(env, err)
  rawset(env, "_err", err)
end

return M
