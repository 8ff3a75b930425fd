--- Which evaluation the running code belongs to.

local current_task = require("moontide.core").task.current

local M = {}

---@type table<moontide.Task, moontide.console.Evaluation>
local by_task = setmetatable({}, { __mode = "k" })

---@param t moontide.Task
---@param evaluation moontide.console.Evaluation
function M.add(t, evaluation)
  by_task[t] = evaluation
end

--- The evaluation of the running task: its own, or that of whoever spawned it.
---@return moontide.console.Evaluation|nil
function M.current()
  local t = current_task()
  while t do
    if by_task[t] then return by_task[t] end
    t = t.scope.owner
  end
end

return M
