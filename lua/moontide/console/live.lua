--- Names that exist in this process right now, by what they name: completion in the string
--- arguments of commands. No code of a script runs.
local step = require "moontide.console.steps"

local M = {}

-- So many tasks are looked at.
local TASKS = 2000

local function add(names, name)
  if type(name) == "string" then names[#names + 1] = name end
end

local function pipelines()
  local loaded = package.loaded
  return { loaded["moontide.startup"], loaded["moontide.shutdown"] }
end

local function phases(names)
  for _, pipeline in pairs(pipelines()) do
    for _, name in ipairs(pipeline.names) do add(names, name) end
  end
end

-- Tasks that are registered to a phase.
local function phase_tasks(names)
  for _, pipeline in pairs(pipelines()) do
    for _, phase in ipairs(pipeline.names) do
      for entry in pipeline.tasks[phase]:each() do add(names, entry.name) end
    end
  end
end

-- A task whose options have no name is called by its number, which its own getter knows.
local function name_of(task)
  local opts = task.opts
  if type(opts) ~= "table" then return task.name end
  local name = rawget(opts, "name")
  return name == nil and "task " .. task.id or name
end

-- Live tasks, with those that they have spawned.
local function live_tasks(names)
  local task = package.loaded["moontide.task"]
  if not task then return end
  local members = require("moontide.core").task.members
  local scopes, left = { task.root, task.pipeline }, TASKS
  while #scopes > 0 do
    for _, t in ipairs(members(table.remove(scopes))) do
      add(names, name_of(t))
      if t.own then scopes[#scopes + 1] = t.own end
      left = left - 1
      if left == 0 then return end
    end
  end
end

local function checks(names)
  local readiness = package.loaded["moontide.readiness"]
  for name in step, readiness and readiness.all() or {} do add(names, name) end
end

local function keys(names)
  for _, name in ipairs(require("moontide.config.keys").names()) do add(names, name) end
end

local function tasks(names)
  phase_tasks(names)
  live_tasks(names)
end

-- By the words of a command's signature and of parameters of the library.
local KINDS = { phase = phases, task = tasks, check = checks, id = live_tasks, key = keys }

--- The names of what a placeholder such as `task or phase` asks for.
---@param placeholder string
---@return string[] names in no order, maybe twice
function M.names(placeholder)
  local names = {}
  for word in placeholder:gmatch "%a+" do
    if KINDS[word] then KINDS[word](names) end
  end
  return names
end

return M
