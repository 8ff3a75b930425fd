--- What the names of phases and tasks mean that somebody types: in the pipeline that runs now.

local suggest = require "moontide.suggest"

local M = {}

---@class moontide.console.Target
---@field run moontide.Run
---@field tasks moontide.PhaseTasks
---@field entry moontide.Entry|nil nil: the phase itself
---@field name string "service-stop" or "service-stop/flush"

local function pipeline(kind)
  return require("moontide." .. kind)
end

--- The run of the pipeline that runs now; while one ends the other, the shutdown's.
---@return moontide.Run|nil
function M.running()
  for _, kind in ipairs { "shutdown", "startup" } do
    local run = pipeline(kind).run_state
    if run and not run.over then return run end
  end
end

--- Why there is nothing to steer. For a sentence that begins with what was asked for.
---@return string
function M.why_none()
  local shutdown = pipeline "shutdown"
  if shutdown.is_complete() then return "the shutdown is over" end
  if shutdown.is_running() then return "the shutdown has begun, its first phase has not" end
  local state = require("moontide.core").state.get()
  if state == "starting" then return "the startup has not begun: the script is loading" end
  return ("no pipeline runs: the process is %s"):format(state)
end

-- The nearest of so many is looked for: each takes microseconds, and the loop waits.
local MOST_NAMES = 1000

-- The names of a run, those of tasks alone and with their phase.
local function names_of(run)
  local names, seen = {}, {}
  local function add(name)
    if not seen[name] then seen[name], names[#names + 1] = true, name end
  end
  for _, phase in ipairs(run.graph:order()) do add(phase) end
  for _, phase in ipairs(run.graph:order()) do
    for entry in run.registry[phase]:each() do
      if #names >= MOST_NAMES then return names end
      add(entry.name)
      add(phase .. "/" .. entry.name)
    end
  end
  return names
end

local function entries_named(run, name)
  local found = {}
  for _, phase in ipairs(run.graph:order()) do
    local entry = run.registry[phase].by_name[name]
    if entry then
      found[#found + 1] = {
        run = run, tasks = run.registry[phase], entry = entry, name = phase .. "/" .. name,
      }
    end
  end
  return found
end

-- "phase/task": names may have a slash of their own, so that each is tried.
local function split(run, name)
  local at = name:find("/", 1, true)
  while at do
    local tasks = run.registry[name:sub(1, at - 1)]
    local entry = tasks and tasks.by_name[name:sub(at + 1)]
    if entry then return { run = run, tasks = tasks, entry = entry, name = name } end
    at = name:find("/", at + 1, true)
  end
end

local function ambiguous(name, found)
  local live, listed = {}, {}
  for i, target in ipairs(found) do
    listed[i] = ("\"%s\""):format(target.name)
    if target.entry.state ~= "done" then live[#live + 1] = target end
  end
  if #live == 1 then return live[1] end
  error(("\"%s\" is a task of several phases: say which, %s"):format(name,
    table.concat(listed, " or ")), 0)
end

--- What a name means; a phase before a task of the same name. Raises a sentence.
---@param what string the command, for the sentence
---@param name any
---@param call string the right call
---@return moontide.console.Target
function M.find(what, name, call)
  if type(name) ~= "string" or name == "" then
    error(("%s: the name of a phase or a task is wanted: %s"):format(what, call), 0)
  end
  local run = M.running()
  if not run then error(("%s: %s"):format(what, M.why_none()), 0) end
  if run.registry[name] then return { run = run, tasks = run.registry[name], name = name } end
  local found = entries_named(run, name)
  if #found == 1 then return found[1] end
  if #found > 1 then return ambiguous(name, found) end
  local target = split(run, name)
  if target then return target end
  error(("%s: %s"):format(what, suggest.unknown(
    ("phase or task of the %s"):format(run.kind), name, names_of(run))), 0)
end

--- How what is over has ended: "ok", "failed after 1.2s".
---@param item moontide.Entry|moontide.PhaseTasks
---@return string
function M.ended(item)
  local text = item.outcome or "over"
  if not item.started_at or not item.ended_at then return text end
  return ("%s after %s"):format(text,
    require("moontide.duration").rounded(item.ended_at - item.started_at))
end

return M
