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

--- The evaluation that a task belongs to: its own, or that of whoever spawned it.
---@param t moontide.Task|nil
---@return moontide.console.Evaluation|nil
function M.of(t)
  while t do
    if by_task[t] then return by_task[t] end
    t = t.scope.owner
  end
end

--- The evaluation that the running code belongs to.
---@return moontide.console.Evaluation|nil
function M.current()
  return M.of(current_task())
end

return M
