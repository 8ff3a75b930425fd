--- A shutdown task that spins, with a timeout of 0.3 s: from its deadline to the first raise in it,
--- and to the next phase, by the way it spins.
---
---     lua5.4 tests/bench/runaway.lua [rounds]     (with $MOONTIDE, and LUA_PATH as for the specs)
local proc = require "support.process"
local runaway = require "support.runaway"
local stats = require "bench.stats"

local ROUNDS = tonumber(arg[1]) or 20

local names = {}
for name in pairs(runaway.bodies) do names[#names + 1] = name end
table.sort(names)

local function add(list, text)
  list[#list + 1] = text and tonumber(text) * 1000 or nil
end

local function show(list)
  if #list == 0 then return ("%-24s"):format("-") end
  return ("%6.2f %6.2f %6.2f    "):format(stats.median(list), stats.percentile(list, 0.95),
    stats.max(list))
end

print(("%-24s %-25s %s"):format("ms after the deadline:", "first raise: p50 p95 max", "next phase"))
for _, name in ipairs(names) do
  local raised, continued = {}, {}
  for _ = 1, ROUNDS do
    local code, out = proc.run { script = runaway.script(runaway.bodies[name]) }
    assert(code == 0, out)
    add(raised, out:match "raised (%S+) interrupted")
    add(continued, out:match "next (%S+)")
  end
  proc.cleanup()
  print(("%-24s %s %s"):format(name, show(raised), show(continued)))
end
