--- A wait of the host's own with a limit of its own, which grows with the phase that it is in.

local core = require "moontide.core"
local task = require "moontide.task"

local M = {}

-- What the phase was given beyond its budget while the pipeline runs.
local function extended(phase)
  return require("moontide.shutdown").graph:get(phase).extended or 0
end

--- Runs fn(...) for so long at most, as task.timeout does; when that is over and the phase has been
--- extended meanwhile, once more. The function is one that can be called again.
---@async
---@param phase string
---@param seconds number
---@param fn fun(...)
---@return boolean ok
---@return any err
function M.wait(phase, seconds, fn, ...)
  local began, left = core.clock.now(), seconds
  while true do
    local ok, err = pcall(task.timeout, left, fn, ...)
    left = began + seconds + extended(phase) - core.clock.now()
    if ok or left <= 0.001 or core.task.current().cancelled then return ok, err end
    if not (task.is_cancelled(err) and err.kind == "timeout") then return ok, err end
  end
end

return M
