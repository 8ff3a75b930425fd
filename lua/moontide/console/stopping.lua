--- The three steps of stopping an evaluation, with all that it has spawned.

local alarm = require "moontide.task.alarm"
local cancel = require "moontide.task.cancel"
local errors = require "moontide.task.errors"
local late = require "moontide.task.late"
local core = require "moontide.core"
local native = require "moontide.core.evaluation"

local M = {}

local UNPAUSED = "a stretch that cannot be paused (in table.sort, string.gsub or the like)"

-- Whom nothing holds off any more: not a shield, not a pcall.
local function kill(t)
  local scope = t.own
  while scope do
    scope.shield = nil
    cancel.cancel_scope(scope, t.cancelled)
    for child in scope:tasks() do kill(child) end
    scope = scope.outer
  end
  t.shield = nil
  native.kill(t)
  if t.outcome == nil then cancel.deliver(t) end
end

local STEPS = {
  -- Raises in each task where it awaits or runs.
  function(t) t:cancel "interrupted by the client" end,
  -- Does so through shields, and again at each instruction.
  function(t)
    if not t.cancelled then cancel.cancel(t, errors.cancelled "interrupted by the client") end
    kill(t)
  end,
  -- Takes their coroutines away.
  function(t) late.abandon(t, core.clock.now(), true) end,
}

--- Takes all steps, a grace apart: nobody is there any more to do so.
---@param t moontide.Task
---@return fun() withdraw it has ended
function M.all(t)
  local times, timer = 0, nil
  local function go_on()
    times, timer = times + 1, nil
    M.step(t, times)
    if t.outcome or times == #STEPS then return end
    timer = alarm.timer(core.clock.now() + alarm.grace, go_on)
  end
  go_on()
  return function()
    if timer then alarm.cancel_timer(timer) end
  end
end

--- Takes the next step.
---@param t moontide.Task of an evaluation
---@param times integer how often it was interrupted, with this one
function M.step(t, times)
  if t.outcome then return end
  STEPS[math.min(times, #STEPS)](t)
end

native.on_late(function(t, held)
  if held then
    cancel.cancel(t, errors.timeout(UNPAUSED, held))
  else
    cancel.expire(t)
  end
end)

return M
