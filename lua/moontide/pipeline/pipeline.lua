--- What startup and shutdown have in common for a script: phases and tasks.
--
-- Registering is allowed at any time. Before the pipeline is sealed everything is; afterwards a
-- task may still join a phase that has not begun.

local failure = require "moontide.lazy" "moontide.pipeline.failure"
local registry = require "moontide.pipeline.registry"
local site = require "moontide.site"
local suggest = require "moontide.lazy" "moontide.suggest"
local task_faults = require "moontide.lazy" "moontide.pipeline.task_faults"

local M = {}

---@class moontide.Pipeline
---@field kind "startup"|"shutdown"
---@field graph table
---@field tasks table<string, moontide.PhaseTasks>
---@field names string[] of its phases, in order of declaration
---@field shared table
---@field sealed boolean
---@field run_state moontide.Run|nil
local Pipeline = {}
Pipeline.__index = Pipeline
M.Pipeline = Pipeline

--- Declares a phase.
---@param name string
---@param opts table|function|nil
---@param fn function|nil the phase's own task, named like the phase
---@return moontide.Pipeline self
function Pipeline:phase(name, opts, fn)
  if type(opts) == "function" then opts, fn = {}, opts end
  if fn ~= nil and type(fn) ~= "function" then
    site.fail(("%s phase %q: the third argument must be a function, not a %s"):format(
      self.kind, tostring(name), type(fn)))
  end
  if self.sealed then
    site.fail(("phase %q: the %s pipeline is sealed; declare phases while the script loads"):format(
      tostring(name), self.kind))
  end
  self.graph:phase(name, opts or {}, site.caller())
  self:remember(name)
  if fn then self:add(name, name, {}, fn) end
  return self
end

--- Declares a phase of the host's own.
function Pipeline:builtin_phase(name, opts)
  self.graph:builtin(name, opts)
  self:remember(name)
end

-- A phase has a place for tasks from its declaration on.
function Pipeline:remember(name)
  self.tasks[name] = registry.phase(name)
  self.names[#self.names + 1] = name
end

--- The fields every pipeline has, added to `self`.
function M.init(self, kind, graph)
  self.kind, self.graph, self.sealed = kind, graph, false
  self.tasks, self.names, self.shared, self.run_state = {}, {}, {}, nil
  return self
end

-- The registry of a phase; raises for an unknown one.
local function phase_of(self, name)
  local tasks = type(name) == "string" and self.tasks[name]
  if tasks then return tasks end
  site.fail(suggest.unknown(self.kind .. " phase", tostring(name), self.names))
end

-- Why nothing can be added to a phase any more, or nil.
local function too_late(tasks)
  if tasks.status == "pending" then return nil end
  if tasks.status == "skipped" then
    return ("phase %s was skipped (%s)"):format(tasks.name, tasks.why)
  end
  return ("phase %s has already run"):format(tasks.name)
end

--- Adds an entry without checking what the script gave.
---@return moontide.TaskHandle|nil
---@return string|nil message when the phase has begun or is over
function Pipeline:add(phase, name, opts, fn)
  local tasks = self.tasks[phase]
  local message = too_late(tasks)
  if message then
    failure.late_task(self, phase, name, message)
    return nil, message
  end
  local entry = registry.entry(phase, name, fn, opts)
  tasks:add(entry)
  return registry.handle(tasks, entry)
end

local function check_name(self, tasks, name)
  if type(name) ~= "string" or name == "" then
    site.fail(("%s task of phase %s: the name must be a string that is not empty"):format(
      self.kind, tasks.name))
  end
  if tasks.by_name[name] then
    site.fail(("duplicate task %q in %s phase %s"):format(name, self.kind, tasks.name))
  end
end

-- What is added to a sealed pipeline is checked at once; the names it gives must be there by now.
local function refuse_fault(handle, what)
  local fault = task_faults.of(handle.phase, handle.entry)
  if not fault then return end
  handle:cancel()
  site.fail(what .. fault)
end

--- Registers a task to a phase.
---@param phase string
---@param name string unique in the phase
---@param opts table|function|nil { timeout = duration, after = task, skip_on = { reasons } }
---@param fn function|nil
---@return moontide.TaskHandle|nil
---@return string|nil message "phase service-stop has already run"
function Pipeline:task(phase, name, opts, fn)
  if fn == nil and type(opts) == "function" then opts, fn = nil, opts end
  local tasks = phase_of(self, phase)
  check_name(self, tasks, name)
  local what = ("%s task %q"):format(self.kind, name)
  if opts ~= nil and type(opts) ~= "table" then
    site.fail(("%s: the options must be a table, not a %s"):format(what, type(opts)))
  end
  if type(fn) ~= "function" then
    site.fail(("%s: the task must be a function, not a %s"):format(what, type(fn)))
  end
  local checked = opts and require("moontide.pipeline.task_options")(opts, what) or {}
  local handle, message = self:add(phase, name, checked, fn)
  if handle and self.sealed and opts then refuse_fault(handle, what) end
  return handle, message
end

--- Registers a task of the host's own; `opts.detail` gives the text for the waiting line.
function Pipeline:builtin_task(phase, name, fn, opts)
  opts = opts or {}
  opts.builtin = true
  opts.site = opts.site or "moontide"
  return self:add(phase, name, opts, fn)
end

--- Checks what could not be checked at registration: names of other tasks and of reasons.
---@return string[] errors
function Pipeline:task_errors()
  local errors = {}
  for _, name in ipairs(self.names) do
    local tasks = self.tasks[name]
    for entry in tasks:each() do
      local fault = (entry.after or entry.skip_on) and task_faults.of(tasks, entry)
      if fault then
        local where = require("moontide.pipeline.task_run").site(entry)
        errors[#errors + 1] = ("%s: task %q of phase %s%s"):format(where, entry.name, name, fault)
      end
    end
  end
  return errors
end

return M
