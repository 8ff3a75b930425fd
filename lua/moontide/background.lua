--- The scope of what runs beside the service for the host's own ends: checks, heartbeat watches,
--- workers. It keeps no process alive by itself and is cancelled in the last phase.

local task = require "moontide.task"

local M = {}

M.scope = task.new_scope("background", nil)

local waiting = {}
local begun = false

--- Runs `fn` when the service becomes ready; at once when it is.
---@param fn fun()
function M.when_ready(fn)
  if begun then return fn() end
  waiting[#waiting + 1] = fn
end

--- The startup pipeline is over: what waited may begin.
function M.begin()
  begun = true
  local list = waiting
  waiting = {}
  for _, fn in ipairs(list) do fn() end
end

--- Starts a task of the background.
---@return moontide.Task
function M.start(name, kind, fn, ...)
  return M.scope:start({ name = name, kind = kind, detached_errors = true }, fn, ...)
end

return M
