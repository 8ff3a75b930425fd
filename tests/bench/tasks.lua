--- Cost of tasks: 10,000 in one scope, each with a deadline of its own and one await, against a
--- plain loop that creates (from a pool), yields and finishes 10,000 coroutines, each running a
--- function.
---
---   lua5.4 tests/bench/tasks.lua        (LUA_CPATH_5_4=BUILD/?.so)
---
--- The two are measured in turn, in CPU time of one process; a figure is the median of 15 ratios.
--- "first time" is a new process each, in which both pools are still empty: a pipeline runs once.
--- "a phase" is the real startup pipeline (tests/bench/phase.lua has the same again and again).
require "moontide"
local core = require "moontide.core"
local task = require "moontide.task"

local COUNT, ROUNDS = 10000, 15

core.host.set_pump(task.pump)

local function seconds_of(fn)
  local from = os.clock()
  fn()
  return os.clock() - from
end

-- The floor: every coroutine comes from a pool, all are suspended at the same time, each is
-- resumed to its end and goes back.
local resume, yield = coroutine.resume, coroutine.yield
local pool, pooled = {}, 0

local function worker(fn)
  while true do
    fn()
    fn = yield()
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
      co = coroutine.create(worker)
    end
    resume(co, yield)
    suspended[i] = co
  end
  for i = 1, COUNT do
    local co = suspended[i]
    resume(co)
    pooled = pooled + 1
    pool[pooled] = co
  end
end

--- A round of tasks, from the first spawn until the scope is empty. `gate` makes what they share.
local function tasks_awaiting(await, gate)
  return function()
    local now, done, shared = core.clock.now(), false, gate and gate()
    local scope = task.new_scope("bench")
    for i = 1, COUNT do
      scope:start({ deadline = now + 60 + i / 1000 }, await, shared)
    end
    task.root:spawn(function()
      if shared then
        shared:set()
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

--- The end of tasks that sleep, by one cancellation of their scope.
local function cancelling()
  local scope = task.new_scope("bench")
  for _ = 1, COUNT do
    scope:start({}, task.sleep, 100)
  end
  repeat
    core.host.wake()
    core.host.turn(false)
  until task.counts().ready == 0
  local from = os.clock()
  scope:cancel("enough")
  repeat
    core.host.wake()
    core.host.turn(false)
  until scope:count() == 0
  return os.clock() - from
end

local cases = {
  turn = { "its turn", tasks_awaiting(function() task.sleep(0) end) },
  event = { "an event", tasks_awaiting(function(e) e:wait() end, task.event) },
}

--- Runs a startup of one such phase and prints the times of a plain loop and of the phase, each for
--- the first time, and ends the process.
local function phase_once()
  local tide = require "moontide"
  local from, floor
  local function await()
    tide.sleep(0)
  end
  tide.config { manage = false, shutdown = { linger = 0 }, log = { level = "warn" } }
  tide.startup:phase("before", function()
    for i = 1, COUNT do
      tide.startup:task("tasks", "task " .. i, { timeout = 30 + i / 1000 }, await)
    end
    floor = seconds_of(plain_loop)
    from = os.clock()
  end)
  tide.startup:phase("tasks", { timeout = "60s" })
  tide.startup:phase("after", function()
    print(floor, os.clock() - from)
    io.stdout:flush()
    os.exit(0)
  end)
  tide.run_until_terminated()
end

local function median(list)
  table.sort(list)
  return list[#list // 2 + 1]
end

local function report(name, times, floors)
  local ratios = {}
  for i = 1, #times do
    ratios[i] = times[i] / floors[i]
  end
  print(("%d tasks awaiting %-22s %6.2f ms, plain coroutines %5.2f ms, ratio %.2f"):format(
    COUNT, name, median(times) * 1e3, median(floors) * 1e3, median(ratios)))
end

local function warm(name, run)
  local times, floors = {}, {}
  run()
  plain_loop()
  for i = 1, ROUNDS do
    local before = seconds_of(plain_loop)
    times[i] = seconds_of(run)
    floors[i] = (before + seconds_of(plain_loop)) / 2
  end
  report(name, times, floors)
end

local function cold(name, key)
  local times, floors = {}, {}
  for i = 1, ROUNDS do
    local child <close> = assert(io.popen(("%s %s %s"):format(arg[-1], arg[0], key)))
    floors[i], times[i] = child:read("n", "n")
  end
  report(name .. ", first time", times, floors)
end

if arg[1] == "phase" then
  phase_once()
elseif arg[1] then
  print(seconds_of(plain_loop), seconds_of(cases[arg[1]][2]))
  os.exit(0, true)
end
for _, key in ipairs { "turn", "event" } do
  warm(table.unpack(cases[key]))
  cold(cases[key][1], key)
end
cold("in a phase", "phase")

local cancelled = {}
for i = 1, ROUNDS do
  cancelled[i] = cancelling()
end
print(("%d tasks cancelled %33.2f ms"):format(COUNT, median(cancelled) * 1e3))
