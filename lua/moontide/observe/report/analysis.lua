--- What a report says beyond the outcomes: which tasks took longest, and what the end waited for.
local M = {}

--- The tasks that ran, longest first.
---@param pipeline moontide.ReportPipeline
---@return { phase: string, task: string, seconds: number, outcome: string }[]
function M.blame(pipeline)
  local list = {}
  for _, phase in ipairs(pipeline.phases) do
    for _, task in ipairs(phase.tasks) do
      if task.seconds then
        list[#list + 1] = {
          phase = phase.name, task = task.name, seconds = task.seconds, outcome = task.outcome,
          order = #list,
        }
      end
    end
  end
  table.sort(list, function(a, b)
    if a.seconds ~= b.seconds then return a.seconds > b.seconds end
    return a.order < b.order
  end)
  for _, item in ipairs(list) do item.order = nil end
  return list
end

-- Of several, the one that ended last; nil when none ran.
local function last_to_end(list)
  local last, last_end
  for _, item in ipairs(list) do
    local ended = item.at and item.at + item.seconds
    if ended and (not last_end or ended > last_end) then last, last_end = item, ended end
  end
  return last
end

-- The tasks that made a phase as long as it was: the last to end, and those it waited for.
local function tasks_behind(phase)
  local by_name, chain = {}, {}
  for _, task in ipairs(phase.tasks) do by_name[task.name] = task end
  local task = last_to_end(phase.tasks)
  while task and task.at and by_name[task.name] do
    table.insert(chain, 1, { task = task.name, at = task.at, seconds = task.seconds })
    by_name[task.name] = nil -- each once, whatever the table says
    task = task.after and by_name[task.after]
  end
  return chain
end

-- The phase before this one that ended last: of those it needs, or simply the one before it.
local function before(pipeline, index, by_name)
  local phase = pipeline.phases[index]
  if phase.needs then
    local needed = {}
    for _, name in ipairs(phase.needs) do needed[#needed + 1] = by_name[name] end
    return last_to_end(needed)
  end
  for i = index - 1, 1, -1 do
    if pipeline.phases[i].at then return pipeline.phases[i] end
  end
end

--- The phases that the end had to wait for, in the order they ran, each with the tasks that made it
--- as long as it was.
---@param pipeline moontide.ReportPipeline
---@return { phase: string, at: number, seconds: number, tasks: table[] }[]
function M.chain(pipeline)
  local index, by_name, backwards = {}, {}, {}
  for i, phase in ipairs(pipeline.phases) do index[phase.name], by_name[phase.name] = i, phase end
  local phase = last_to_end(pipeline.phases)
  while phase and index[phase.name] do
    backwards[#backwards + 1] = {
      phase = phase.name, at = phase.at, seconds = phase.seconds, tasks = tasks_behind(phase),
    }
    local i = index[phase.name]
    index[phase.name] = nil
    phase = before(pipeline, i, by_name)
  end
  local chain = {}
  for i = #backwards, 1, -1 do chain[#chain + 1] = backwards[i] end
  return chain
end

return M
