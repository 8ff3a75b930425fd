--- Late tasks: what is due in the clock, and closing those that do not end in their grace.
local alarm = require "moontide.task.alarm"
local cancel = require "moontide.task.cancel"
local ends = require "moontide.task.ends"
local queue = require "moontide.task.queue"
local traceback = require "moontide.task.traceback"

local defer_alarm, settle = queue.defer_alarm, ends.settle
local DONE, NEW, RUNNING, SLEEP = queue.DONE, queue.NEW, queue.RUNNING, queue.SLEEP

local M = {
  --- Records of the tasks that were closed because they did not end in their grace: newest last.
  ---@type { name: string, site: string, seconds: number, traceback: string }[]
  abandoned = {},
}

--- Abandoned tasks remembered.
local REMEMBERED = 64

local function remember(t, site, now)
  local list = M.abandoned
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
  t.at = RUNNING
  if type(source) == "table" and source.forget then
    source:forget()
  end
  local ok, err = ends.close_body(t)
  if not ok then
    t.left = ("%s\nerror while it was closed: %s"):format(t.left, tostring(err))
  end
  t.body, t.error = false, t.cancelled
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
  if at == DONE then
    return -- it ended when another was closed
  end
  local joins = not t.body or type(at) == "table" and at.firm
  abandon_below(t, now, must or not joins)
  if not must and (joins or type(at) ~= "table") then
    if type(t.at) == "table" then
      defer_alarm(t)
    end
  elseif at == NEW then
    ends.drop(t)
  elseif not t.body then
    settle(t, ends.outcome_of(t))
  else
    close_now(t, now)
  end
end

--- A waiting task's clock entry is due: its sleep is over, its deadline has passed, a shield ends
--- or its grace does. What is not due yet gets a new entry.
function alarm.on_task(t, now)
  if type(t.at) ~= "table" then
    return
  elseif t.cancelled then
    local kill_at = alarm.kill_at(t)
    if kill_at and kill_at <= now then
      return abandon(t, now, false)
    elseif t.shield and t.shield.till <= now then
      cancel.cancel_below(t, t.cancelled)
      return cancel.deliver(t)
    end
  elseif t.deadline and t.deadline <= now then
    return cancel.expire(t)
  end
  if t.at == SLEEP and t.value <= now then
    return queue.ready(t)
  end
  defer_alarm(t)
end

return M
