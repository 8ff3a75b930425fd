--- Cost of a phase: 10,000 tasks in one startup phase, each with a deadline of its own and one
--- await, against a plain loop that creates (from a pool), yields and finishes 10,000 coroutines.
---
---   build/moontide tests/bench/phase.lua
---
--- Seven phases, each followed by a plain loop in the same process; CPU time, medians.
local tide = require "moontide"

local COUNT, ROUNDS = 10000, 7

tide.config { manage = false, shutdown = { linger = 0 }, log = { level = "warn" } }

local function milliseconds(fn)
  local from = os.clock()
  fn()
  return (os.clock() - from) * 1000
end

local resume, yield = coroutine.resume, coroutine.yield
local pool = {}

local function worker(fn)
  while true do
    fn()
    fn = yield()
  end
end

local function plain_loop()
  for i = 1, COUNT do
    pool[i] = pool[i] or coroutine.create(worker)
    resume(pool[i], yield)
  end
  for i = 1, COUNT do resume(pool[i]) end
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local engine, plain = {}, {}
local began

local function await()
  tide.sleep(0)
end

for round = 1, ROUNDS do
  local name = "round " .. round
  tide.startup:phase("before " .. round, function()
    for i = 1, COUNT do
      tide.startup:task(name, "task " .. i, { timeout = 30 + i / 1000 }, await)
    end
    collectgarbage()
    began = os.clock()
  end)
  tide.startup:phase(name, { timeout = "60s" })
  tide.startup:phase("plain " .. round, function()
    engine[round] = (os.clock() - began) * 1000
    plain_loop() -- the first fills the pool
    plain[round] = milliseconds(plain_loop)
  end)
end

tide.startup:phase("report", function()
  local phase, loop = median(engine), median(plain)
  print(("%d tasks in a phase %6.2f ms, plain coroutines %6.2f ms, ratio %.2f"):format(COUNT, phase,
    loop, phase / loop))
end)
