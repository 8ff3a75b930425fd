--- Phases side by side (`startup.parallel`, `shutdown.parallel`): each starts when those that it
--- depends on have ended, in a task of its own. Returns when all have ended.

local task = require "moontide.task"

---@param self moontide.Run
---@param order string[] the names of the phases
---@param run_phase fun(self: moontide.Run, name: string)
return function(self, order, run_phase)
  local done, left = {}, #order
  local waiter, started = nil, {}
  local function ready(name)
    for _, before in ipairs(self.graph:dependencies(name)) do
      if self.included[before] and not done[before] then return false end
    end
    return true
  end
  local function body(name)
    run_phase(self, name)
    done[name] = true
    left = left - 1
    if waiter then waiter:wake() end
  end
  while left > 0 do
    for _, name in ipairs(order) do
      if not started[name] and ready(name) then
        started[name] = true
        local opts = { name = "phase " .. name, scope = task.pipeline, kind = "internal" }
        task.start(opts, body, name)
      end
    end
    waiter = task.waiter(self.kind .. " phases")
    if left > 0 then waiter:wait() end
  end
end
