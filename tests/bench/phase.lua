--- Cost of a phase: 10,000 tasks in one startup phase, each with a deadline of its own and one await,
--- against a plain loop that creates (from a pool), yields and finishes 10,000 coroutines.
---
---   build/moontide tests/bench/phase.lua
---
--- Seven phases, each followed by a plain loop in the same process; the figures are medians.
local tide = require "moontide"
local core = require "moontide.core"

local COUNT, ROUNDS = 10000, 7

tide.config { manage = false, shutdown = { linger = 0 }, log = { level = "warn" } }

local function milliseconds(fn)
  local from = core.host.hrtime()
  fn()
  return (core.host.hrtime() - from) / 1e6
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

for round = 1, ROUNDS do
  local name = "round " .. round
  tide.startup:phase(name, { timeout = "60s" })
  for i = 1, COUNT do
    tide.startup:task(name, "task " .. i, { timeout = 30 + i / 1000 }, function() tide.sleep(0) end)
  end
  tide.startup:phase("plain " .. round, function()
    local phase = tide.startup.tasks[name]
    engine[round] = (phase.ended_at - phase.started_at) * 1000
    plain_loop() -- the first fills the pool
    plain[round] = milliseconds(plain_loop)
  end)
end

tide.startup:phase("report", function()
  local phase, loop = median(engine), median(plain)
  print(("%d tasks in a phase %6.2f ms, plain coroutines %6.2f ms, ratio %.2f"):format(COUNT, phase,
    loop, phase / loop))
end)
