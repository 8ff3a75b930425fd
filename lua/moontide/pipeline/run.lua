--- One run of a pipeline: the order of its phases, what they share of the total, and what cuts it
--- short. The same engine for startup and shutdown.

local core = require "moontide.core"
local record = require "moontide.pipeline.record"
local task = require "moontide.task"

local now = core.clock.now

local M = {}

---@class moontide.Run
---@field kind "startup"|"shutdown"
---@field graph table
---@field registry table<string, moontide.PhaseTasks>
---@field shared table what the tasks' ctx share
---@field reason table|nil why the shutdown runs; nil in startup
---@field total number|nil seconds
---@field total_end number|nil
---@field reserve number seconds of the total kept for the last phase, the report and the logs
---@field cut { kind: "stop"|"force"|"abort", text: string }|nil
---@field failure moontide.Entry|nil the first failure that was not tolerated
---@field active moontide.PhaseRun[]
local Run = {}
Run.__index = Run

-- What a phase leaves of the total. The last phase may use most of the reserve.
local function kept(self, node)
  return node.always and self.reserve / 4 or self.reserve
end

--- The end of the total for a phase, and its words.
function Run:limit_for(node)
  if not self.total_end then return nil end
  return self.total_end - kept(self, node), self.limit_text
end

--- Until when a late task of the phase may clean up: half of what the phase leaves, so that a short
--- total has its last phase and its report all the same.
function Run:grace_limit_for(node)
  return self.total_end and self.total_end - kept(self, node) / 2
end

--- The run has begun to wait for a phase.
function Run:waits()
  require("moontide.pipeline.waiting").start(self)
end

--- Tells systemd; does nothing without it.
function Run:status(text)
  if core.notify.active() then require("moontide.systemd").status(self, text) end
end

--- A failure that the phase does not tolerate: the first is the one that is reported.
function Run:failed(phase, entry)
  if not self.failure then
    self.failure, self.failed_phase = entry, phase.name
    self.cut = self.cut or { kind = "abort", text = ("%s failed"):format(phase.name) }
    for _, other in ipairs(self.active) do
      if other ~= phase and not other.node.always then other:cancel(phase.name .. " failed") end
    end
  else
    self.secondary[#self.secondary + 1] = entry
  end
end

--- Cuts the run short: what runs is cancelled (but for `always` phases), nothing more begins but
--- `always` phases. The caller need not be a task.
---@param kind "stop"|"force"
---@param text string what cancelled tasks are told
function Run:stop(kind, text)
  self.cut = self.cut or { kind = kind, text = text }
  for _, active in ipairs(self.active) do
    if not active.node.always then active:cancel(text) end
  end
end

-- Why a phase does not run, or nil.
local function why_not(self, node)
  if node.enabled == false then return "disabled" end
  if self.skip and self.skip[node.name] then return "reason " .. self.reason.kind end
  if self.cut and not node.always then return self.cut.text end
  return self.registry[node.name].asked
end

-- A phase without tasks is over at once: a start of empty phases does not load the engine.
local function pass(self, tasks)
  local at = now()
  tasks.status, tasks.outcome, tasks.started_at, tasks.ended_at = "done", "ok", at, at
  record.phase_passed(self, tasks.name)
end

local function run_phase(self, name)
  local node = self.graph:get(name)
  local tasks = self.registry[name]
  local why = why_not(self, node)
  if why then
    tasks.status, tasks.outcome, tasks.why = "skipped", "skipped", why
    record.phase_skipped(self, name, tasks.live, why)
    return
  end
  if tasks.live == 0 then return pass(self, tasks) end
  require("moontide.pipeline.phase_run").run(self, node)
end

local function sequential(self, order)
  for _, name in ipairs(order) do run_phase(self, name) end
end

--- Runs the phases from `from` on (nil: from the first) to the end of the order.
---@return string outcome "ok", "failed" or "stopped"
function Run:execute(from)
  local order, included = {}, {}
  local begun = from == nil
  for _, name in ipairs(self.graph:order()) do
    begun = begun or name == from
    if begun then
      order[#order + 1] = name
      included[name] = true
    else
      local tasks = self.registry[name]
      tasks.status, tasks.outcome, tasks.why = "skipped", "skipped", "run from " .. from
    end
  end
  self.included = included
  if self.parallel then
    require("moontide.pipeline.parallel")(self, order, run_phase)
  else
    sequential(self, order)
  end
  self.over, self.ended_at = true, now()
  task.limit_grace(nil)
  if self.waiting_task then self.waiting_task:cancel("the pipeline is over") end
  if self.failure then return "failed" end
  return self.cut and "stopped" or "ok"
end

--- Makes a run; the fields are those of moontide.Run.
---@return moontide.Run
function M.new(fields)
  fields.active, fields.secondary, fields.started_at = {}, {}, now()
  fields.reserve = fields.reserve or 0
  fields.limit_text = ("what was left of the %s total"):format(fields.kind)
  return setmetatable(fields, Run)
end

return M
