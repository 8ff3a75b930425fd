--- Who is told what begins and ends in the pipelines: an embedding program, a trace of the console.
--- Loaded by the first of them.

local record = require "moontide.pipeline.record"

local M = {}

---@alias moontide.pipeline.Observer fun(what: string, pipeline: string|nil, phase: string|nil,
---task: string|nil, outcome: string|nil, ms: integer|nil)

local observers = {}

local function tell(...)
  for _, fn in ipairs(table.move(observers, 1, #observers, 1, {})) do fn(...) end
end

--- Calls `fn` for what begins and ends: "phase_began", "phase_ended", "task_began", "task_ended",
--- "check" (with its result as the outcome). It must neither raise nor await.
---@param fn moontide.pipeline.Observer
---@return fun() unsubscribe
function M.add(fn)
  observers[#observers + 1] = fn
  record.observer = tell
  return function()
    for i, other in ipairs(observers) do
      if other == fn then table.remove(observers, i) break end
    end
    record.observer = #observers > 0 and tell
  end
end

return M
