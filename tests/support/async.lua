--- Tests that await: each body runs as a task on the host's loop, within a bound.
---
---   local async = require "support.async"
---   async.it("wakes in time", function() task.sleep(1) end)       -- real time
---   local it = async.virtual()                                    -- the clock obeys the test
---
--- With the virtual clock, time goes on by itself whenever nothing is ready, so a sleep of an hour
--- takes a moment. A test fails when a task or a timer of it is left over.
require "moontide"
local core = require "moontide.core"
local alarm = require "moontide.task.alarm"
local task = require "moontide.task"

local M = { core = core }

core.host.set_pump(task.pump)

--- Real seconds, and virtual ones, that a test may take.
local REAL_LIMIT, VIRTUAL_LIMIT = 20, 3600
--- A turn may do the last of what is waited for and then block for more: only so long.
local TURN = 0.005
--- Turns of the queue in which what a test has cancelled at its end comes to its own.
local LAST_TURNS = 100

local virtual = false

local function turn_once()
  if virtual or task.counts().ready > 0 then
    return core.host.turn(false)
  end
  local fired = false
  local bound = alarm.timer(core.clock.now() + TURN, function() fired = true end)
  core.host.turn(true)
  if not fired then
    alarm.cancel_timer(bound)
  end
end

--- Turns the loop until done() is true.
---@param done fun(): boolean
---@param what string
function M.turn_until(done, what)
  local from, began = core.clock.now(), os.time()
  local step = 0.001
  while not done() do
    if task.counts().ready > 0 then
      core.host.wake() -- what was queued from out here entered Lua by no callback
    end
    turn_once()
    if virtual and not done() and task.counts().ready == 0 then
      core.clock.advance(step)
      step = math.min(step * 1.5, 1)
    end
    if core.clock.now() - from > (virtual and VIRTUAL_LIMIT or REAL_LIMIT)
      or os.difftime(os.time(), began) > REAL_LIMIT then
      error(("%s: not done within its bound"):format(what), 0)
    end
  end
end

-- A turn of the queue ends with its time, which on a busy machine the test alone may use up: what
-- it has cancelled is queued then, and not left behind.
local function let_end(live)
  for _ = 1, LAST_TURNS do
    local counts = task.counts()
    if counts.live == live or counts.ready == 0 then return end
    core.host.wake()
    turn_once()
  end
end

--- Runs fn as a task to its end and raises its failure.
---@param fn fun()
---@param name string|nil
function M.run(fn, name)
  local live, timers = task.counts().live, core.clock.pending()
  local t = task.root:start({ name = name or "test", detached_errors = true }, fn)
  local ok, err = pcall(M.turn_until, function() return t.outcome ~= nil end, name or "test")
  if not ok then
    local where = t:traceback()
    task.root:cancel("the test was not done")
    error(("%s\nit was at:\n%s"):format(err, where), 0)
  elseif t.outcome ~= "ok" then
    error(type(t.error) == "string" and t.error .. "\n" .. (t.stack or "") or t.error, 0)
  end
  let_end(live)
  local left = task.counts().live - live
  assert(left == 0, ("the test left %d tasks behind"):format(left))
  assert(core.clock.pending() == timers, ("the test left %d timers behind"):format(
    core.clock.pending() - timers))
end

--- Declares a busted test whose body may await.
---@param name string
---@param fn fun()
function M.it(name, fn)
  require("busted").it(name, function()
    M.run(fn, name)
  end)
end

--- From here on the process has the virtual clock. Returns async.it.
function M.virtual()
  if not virtual then
    virtual = true
    core.clock.make_virtual()
  end
  return M.it
end

--- Moves a virtual clock on, outside any task.
---@param seconds number
function M.advance(seconds)
  core.clock.advance(seconds)
end

return M
