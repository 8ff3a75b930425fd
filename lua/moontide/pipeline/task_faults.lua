--- What can be wrong with the tasks of a phase once all are known. Loaded with the first task that
--- names others, or reasons.

local reasons = require "moontide.reason"
local suggest = require "moontide.lazy" "moontide.suggest"

local M = {}

-- The name of a task that comes round to itself by `after`, or nil.
local function circle(tasks, entry)
  local seen, at = {}, entry
  while at and at.after do
    if seen[at] then return at.name end
    seen[at] = true
    at = tasks.by_name[at.after]
  end
end

--- What is wrong with the `after` or `skip_on` of a task, or nil.
---@param tasks moontide.PhaseTasks
---@param entry moontide.Entry
---@return string|nil
function M.of(tasks, entry)
  if entry.after and not tasks.by_name[entry.after] then
    local known = {}
    for other in tasks:each() do known[#known + 1] = other.name end
    return ": " .. suggest.unknown("task", entry.after, known)
  elseif entry.after and circle(tasks, entry) == entry.name then
    return " waits for itself through after"
  end
  for _, kind in ipairs(entry.skip_on or {}) do
    if not reasons.kinds[kind] then
      return ": skip_on: " .. suggest.unknown("reason", kind, reasons.names())
    end
  end
end

return M
