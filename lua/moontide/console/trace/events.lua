--- What happens in the lifecycle, told to a session: moves of the state, phases, tasks of the
--- pipelines, results of checks.

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

--- Begins to tell.
---@param fields { label: string, limit: moontide.console.Limit, tell: fun(text: string),
--- fits: fun(what: string, phase: string|nil, name: string|nil): boolean }
---@return moontide.console.EventTrace
function M.start(fields)
  local self = setmetatable(fields, EventTrace)
  self.on = true
  self.ends = {
    observers.add(function(what, pipeline, phase, name, outcome, ms)
      local text = TEXTS[what]
      if text and self.fits(what, phase, name) then
        tell(self, text(pipeline, phase, name, outcome, ms))
      end
    end),
    states.on_state(function(from, to, reason)
      if not self.fits("state") then return end
      tell(self, ("state %s -> %s%s"):format(from, to, reason and ": " .. tostring(reason) or ""))
    end),
  }
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
