--- What happens in the lifecycle, told to a session: moves of the state, phases, tasks of the
--- pipelines, results of checks; and the ends of all other tasks.

local ended = require "moontide.task.ended"
local observers = require "moontide.pipeline.observers"
local states = require "moontide.states"

local M = {}

---@class moontide.console.EventTrace
---@field label string
---@field limit moontide.console.Limit
---@field tell fun(text: string)
---@field fits fun(what: string, phase: string|nil, name: string|nil): boolean
---@field ends (fun())[]
---@field on boolean
local EventTrace = {}
EventTrace.__index = EventTrace

local TEXTS = {
  phase_began = function(pipeline, phase) return ("%s phase %s began"):format(pipeline, phase) end,
  phase_ended = function(pipeline, phase, _, outcome, ms)
    return ("%s phase %s %s  %d ms"):format(pipeline, phase, outcome, ms)
  end,
  task_began = function(_, phase, name) return ("task %s/%s began"):format(phase, name) end,
  task_ended = function(_, phase, name, outcome, ms)
    return ("task %s/%s %s  %d ms"):format(phase, name, outcome, ms)
  end,
  check = function(_, _, name, outcome, ms)
    return ("check %s %s  %d ms"):format(name, outcome, ms)
  end,
}

-- It stands in the middle of a pipeline, which must not feel it.
local function tell(self, text)
  if self.limit:admit() then pcall(self.tell, text) end
end

local function milliseconds(t)
  return t.started_at and math.floor((t.ended_at - t.started_at) * 1000 + 0.5) or 0
end

-- Tasks of the pipelines are told of as such, the console's own are no news.
local function tell_task(self, t)
  local kind = t.kind
  if kind == "console" or kind == "phase task" then return end
  local opts, site = t.opts, t:site()
  local name = opts and opts.name
  if not self.fits("task", site, name) then return end
  tell(self, ("task %s (%s) %s  %d ms"):format(name or "without a name", site, t.outcome,
    milliseconds(t)))
end

local function watch_lifecycle(self)
  return observers.add(function(what, pipeline, phase, name, outcome, ms)
    if not self.fits(what, phase, name) then return end
    tell(self, TEXTS[what](pipeline, phase, name, outcome, ms))
  end), states.on_state(function(from, to, reason)
    if not self.fits("state") then return end
    tell(self, ("state %s -> %s%s"):format(from, to, reason and ": " .. tostring(reason) or ""))
  end)
end

--- Begins to tell.
---@param fields { label: string, limit: moontide.console.Limit, tell: fun(text: string),
--- of_tasks: boolean|nil, fits: fun(what: string, phase: string|nil, name: string|nil): boolean }
---@return moontide.console.EventTrace
function M.start(fields)
  local self = setmetatable(fields, EventTrace)
  self.on = true
  if self.of_tasks then
    self.ends = { ended.observe(function(t) pcall(tell_task, self, t) end) }
  else
    self.ends = { watch_lifecycle(self) }
  end
  return self
end

--- Ends it; again harmless.
function EventTrace:stop()
  if not self.on then return end
  self.on = false
  for _, fn in ipairs(self.ends) do fn() end
  self.limit:stop()
end

return M
