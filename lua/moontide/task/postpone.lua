--- A later deadline for a task, and for what below it has the same one only because its owner has.
---
--- Deadlines only shrink on their way down; here one is moved at its top, by whoever set it.
local mechanism = require("moontide.core").task
local scopes = require "moontide.task.scope"

local M = {}

-- Its own timeout goes on to hold for a task that was given one but had the earlier time of its
-- owner. (When it was made is not noted: it began at that time or a little later.)
local function bounded(t, at)
  local timeout = t.opts and t.opts.timeout
  if not timeout or not t.started_at then return at end
  return math.min(at, t.started_at + scopes.duration(timeout, "timeout", 1))
end

local move

local function move_below(t, from, at)
  local scope = t.own
  while scope do
    if scope.deadline == from then scope.deadline = at end
    for child in scope:tasks() do
      if child.deadline == from then move(child, from, bounded(child, at)) end
    end
    scope = scope.outer
  end
end

-- Owner first: a task whose deadline is its scope's has no entry in the clock of its own.
function move(t, from, at)
  if t.cancelled then return end
  t.deadline = at
  move_below(t, from, at)
  mechanism.arm(t)
end

--- Moves the deadline of a task that is not late yet.
---@param t moontide.Task
---@param at number absolute, on the clock's scale
---@return boolean moved false when it is over, was cancelled, or has no deadline
function M.to(t, at)
  local from = t.deadline
  if t.outcome or t.cancelled or not from then return false end
  move(t, from, at)
  return true
end

return M
