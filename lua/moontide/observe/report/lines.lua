--- The report in the log: one record a pipeline, short enough for one line.
local core = require "moontide.core"

local M = {}

local MOST_TASKS = 40
local MOST_BLAMED = 5

-- Less than that is not worth a place in the chain.
local WORTH_NAMING = 0.001

local function brief(seconds)
  if not seconds then return "-" end
  if seconds < 1 then return ("%dms"):format(math.floor(seconds * 1000 + 0.5)) end
  return ("%.1fs"):format(seconds)
end

-- Phases that had something to do, or that did not go well.
local function phases(pipeline)
  local parts = {}
  for _, phase in ipairs(pipeline.phases) do
    if #phase.tasks > 0 or phase.outcome == "failed" then
      parts[#parts + 1] = ("%s %s %s"):format(phase.name, phase.outcome, brief(phase.seconds))
    end
  end
  return table.concat(parts, ", ")
end

-- All tasks while they are few; else those that did not end well come first.
local function tasks(pipeline)
  local bad, good = {}, {}
  for _, phase in ipairs(pipeline.phases) do
    for _, task in ipairs(phase.tasks) do
      local list = task.outcome == "ok" and good or bad
      list[#list + 1] = ("%s/%s %s %s"):format(phase.name, task.name, task.outcome,
        brief(task.seconds))
    end
  end
  local count = #bad + #good
  table.move(good, 1, #good, #bad + 1, bad)
  if count <= MOST_TASKS then return table.concat(bad, ", "), count end
  return ("%s and %d more"):format(table.concat(bad, ", ", 1, MOST_TASKS), count - MOST_TASKS),
    count
end

local function blame(pipeline)
  local parts = {}
  for i, item in ipairs(pipeline.blame) do
    if i > MOST_BLAMED then break end
    parts[i] = ("%s/%s %s"):format(item.phase, item.task, brief(item.seconds))
  end
  return table.concat(parts, ", ")
end

local function chain(pipeline)
  local parts = {}
  for _, item in ipairs(pipeline.chain) do
    if item.seconds >= WORTH_NAMING then
      local names = {}
      for i, task in ipairs(item.tasks) do names[i] = task.task end
      parts[#parts + 1] = ("%s %s%s"):format(item.phase, brief(item.seconds),
        #names > 0 and " (" .. table.concat(names, " > ") .. ")" or "")
    end
  end
  return #parts > 0 and table.concat(parts, " > ") or nil
end

--- The report in a few lines, as who looks in gets it at the end.
---@param summary moontide.Report
---@return string
function M.text(summary)
  local reason = summary.reason and summary.reason.text or "without a reason"
  local list = { ("exit %d: %s"):format(summary.exit_code, reason) }
  for _, pipeline in ipairs(summary.pipelines) do
    local did = phases(pipeline)
    list[#list + 1] = ("%s %s in %s%s"):format(pipeline.kind, pipeline.outcome,
      brief(pipeline.seconds), did ~= "" and ": " .. did or "")
  end
  return table.concat(list, "\n")
end

---@param pipeline moontide.ReportPipeline with blame and chain
function M.write(pipeline)
  local listed, count = tasks(pipeline)
  local level = pipeline.outcome == "failed" and 2 or (count == 0 and 0 or 1)
  core.log.write(level, "report",
    ("%s %s in %s"):format(pipeline.kind, pipeline.outcome, brief(pipeline.seconds)),
    "pipeline", pipeline.kind, "outcome", pipeline.outcome,
    "duration_ms", math.floor(pipeline.seconds * 1000 + 0.5),
    "phases", phases(pipeline), "task_count", count, "tasks", listed,
    "blame", blame(pipeline), "chain", chain(pipeline))
end

return M
