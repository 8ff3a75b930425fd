--- Late tasks: what is due in the clock, and closing those that do not end in their grace.
local alarm = require "moontide.task.alarm"
local cancel = require "moontide.task.cancel"
local ends = require "moontide.task.ends"
local mechanism = require("moontide.core").task
local traceback = require "moontide.task.traceback"

local arm, settle = mechanism.arm, mechanism.settle

local abandoned = require("moontide.task").abandoned

local M = {}

--- Abandoned tasks remembered.
local REMEMBERED = 64

local function remember(t, site, now)
  local list = abandoned
  list[#list + 1] = {
    name = t.name, site = site, seconds = now - t.started_at, traceback = t.left,
  }
  if #list > REMEMBERED then
    table.remove(list, 1)
  end
end

local abandon

local function abandon_below(t, now, must)
  local scope = t.own
  while scope do
    for child in scope:tasks() do
      child.cancelled = child.cancelled or t.cancelled
      abandon(child, now, must)
    end
    scope = scope.outer
  end
end

--- Closes a suspended task for good. Its <close> variables run, but cannot await.
local function close_now(t, now)
  local source, site = t.at, t:site()
  t.left = traceback.of(t)
  t.stack = t.stack or t.left
  local ok, err = mechanism.close(t)
  if source.forget then
    source:forget()
  end
  if not ok then
    t.left = ("%s\nerror while it was closed: %s"):format(t.left, tostring(err))
  end
  t.error = t.cancelled
  abandon_below(t, now, true) -- what its <close> variables may have started
  remember(t, site, now)
  settle(t, "abandoned")
end

--- Ends a task that did not end in its grace, after those below it. One that only waits for those
--- below goes on by itself once they are gone, unless its owner is closed as well (`must`).
---@param t moontide.Task
---@param now number
---@param must boolean
function abandon(t, now, must)
  local at = t.at
  if at == "done" then
    return -- it ended when another was closed
  end
  local waits = type(at) ~= "string"
  local joins = not t.body or waits and at.firm
  abandon_below(t, now, must or not joins)
  if not must and (joins or not waits) then
    if type(t.at) ~= "string" then
      arm(t)
    end
  elseif at == "new" then
    ends.drop(t)
  elseif not t.body then
    ends.settle_as_it_did(t)
  else
    close_now(t, now)
  end
end

M.abandon = abandon

--- The clock entry of a waiting task is due, not only because its sleep is over: its deadline has
--- passed, its shield ends or its grace does.
---@param t moontide.Task
---@param now number
function M.due(t, now)
  if not t.cancelled then
    return cancel.expire(t)
  end
  local kill_at, shield = alarm.kill_at(t), t.shield
  if kill_at and kill_at <= now then
    abandon(t, now, false)
  elseif shield and shield.till <= now then
    cancel.cancel_below(t, t.cancelled)
    cancel.deliver(t)
  end
end

return M
