--- Cost of tasks: 10,000 in one scope, each with a deadline of its own and one await, against a
--- plain loop that creates (from a pool), yields and finishes 10,000 coroutines.
---
---   lua5.4 tests/bench/tasks.lua [rounds]       (with LUA_CPATH=BUILD/?.so)
---
--- The two are measured in turn, in the same process; the figure is the median of the ratios.
require "moontide"
local core = require "moontide.core"
local task = require "moontide.task"

local COUNT = 10000
local ROUNDS = tonumber(arg[1]) or 15

core.host.set_pump(task.pump)

local function seconds_of(fn)
  local from = core.clock.now()
  fn()
  return core.clock.now() - from
end

-- The floor: every coroutine comes from a pool, all are suspended at the same time, each is
-- resumed to its end and goes back.
local pool, pooled = {}, 0

local function body()
  while true do
    coroutine.yield() -- the await
    coroutine.yield() -- the end
  end
end

local function plain_loop()
  local suspended = {}
  for i = 1, COUNT do
    local co
    if pooled > 0 then
      co = pool[pooled]
      pool[pooled] = nil
      pooled = pooled - 1
    else
      co = coroutine.create(body)
    end
    coroutine.resume(co)
    suspended[i] = co
  end
  for i = 1, COUNT do
    local co = suspended[i]
    coroutine.resume(co)
    pooled = pooled + 1
    pool[pooled] = co
  end
end

--- Awaits for one round; returns the function that does it.
local function with(await, finish)
  return function()
    local now = core.clock.now()
    local done = false
    local scope = task.new_scope("bench")
    local context = finish()
    for i = 1, COUNT do
      scope:start({ deadline = now + 60 + i / 1000 }, await, context)
    end
    task.root:spawn(function()
      if context then
        task.sleep(0)
        context:set()
      end
      scope:join()
      done = true
    end)
    repeat
      core.host.wake()
      core.host.turn(false)
    until done
  end
end

local cases = {
  { "one turn (sleep 0)", with(function() task.sleep(0) end, function() end) },
  { "an event", with(function(e) e:wait() end, task.event) },
}

local function median(list)
  table.sort(list)
  return list[#list // 2 + 1]
end

for _, case in ipairs(cases) do
  local name, run = case[1], case[2]
  run()
  plain_loop()
  local ratios, times, floors = {}, {}, {}
  for i = 1, ROUNDS do
    local before = seconds_of(plain_loop)
    times[i] = seconds_of(run)
    floors[i] = (before + seconds_of(plain_loop)) / 2
    ratios[i] = times[i] / floors[i]
  end
  print(("%d tasks awaiting %-20s %6.2f ms   plain coroutines %6.2f ms   ratio %.2f"):format(
    COUNT, name, median(times) * 1e3, median(floors) * 1e3, median(ratios)))
end
