--- Ends a task or a phase of a running pipeline as skipped, so that the pipeline goes on: somebody
--- asks for it from outside. Loaded when that happens.
--
-- What runs is cancelled as by its deadline: its cleanup may await for the grace, then it is
-- closed. Its outcome is "skipped" unless it ends in order all the same; nobody counts that as a
-- failure.

local core = require "moontide.core"
local record = require "moontide.pipeline.record"
local task = require "moontide.task"

local M = {}

-- Between two attempts there is no task but the one that waits for the next.
local function running_task(entry)
  local t = entry.task
  if t and not t.outcome then return t end
  return entry.driver
end

local function cancel(entry, text)
  entry.asked = text
  local t = running_task(entry)
  if not t then return end
  t.grace_end = t.grace_end or core.clock.now() + task.grace
  t:cancel(text)
end

--- What became of a task that was told to end: called when it has.
---@param entry moontide.Entry
---@param outcome string of its (last) coroutine, not "ok"
---@return string outcome
function M.ended(entry, outcome)
  local text = entry.asked
  if outcome == "failed" then
    text = ("%s (it ended with: %s)"):format(text, record.text(entry.error))
  elseif outcome ~= "cancelled" then
    text = ("%s (it %s)"):format(text, outcome == "abandoned" and "did not end in its grace"
      or "was " .. outcome)
  end
  entry.error = text
  return "skipped"
end

--- Skips one task of a phase that runs or has not begun.
---@param tasks moontide.PhaseTasks
---@param entry moontide.Entry
---@param text string
---@return string|nil message what is done, for a person; nil when it is over already
function M.entry(tasks, entry, text)
  if entry.state == "running" then
    if entry.asked then return "it is being skipped already: " .. entry.asked end
    cancel(entry, text)
    return "it is told to end"
  elseif entry.state ~= "waiting" then
    return nil
  elseif tasks.status == "running" then
    tasks.run:skip_waiting(entry, text)
    return "it had not started"
  end
  tasks.asked_tasks = tasks.asked_tasks or {}
  tasks.asked_tasks[entry] = text
  return ("it will not start when phase %s begins"):format(tasks.name)
end

--- Skips what is left of a phase.
---@param tasks moontide.PhaseTasks
---@param text string
---@return string|nil message nil when it is over already
function M.phase(tasks, text)
  if tasks.status == "pending" then
    tasks.asked = text
    return "it will not begin"
  elseif tasks.status ~= "running" then
    return nil
  end
  local run = tasks.run
  run.asked = text
  local count = 0
  for _, entry in ipairs(run.list) do
    if entry.state == "running" and not entry.asked then
      cancel(entry, text)
      count = count + 1
    end
  end
  return ("%d running task%s told to end, nothing more of it starts"):format(count,
    count == 1 and " is" or "s are")
end

return M
