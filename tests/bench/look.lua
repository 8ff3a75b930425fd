--- Looking into a process with many tasks, over its console: how long each command takes, and how
--- late the loop came to a timer meanwhile, beside how late it is when nobody asks.
---
---     lua5.4 tests/bench/look.lua [rounds]     (with $MOONTIDE, and LUA_PATH as for the specs)
local console = require "support.console"
local proc = require "support.process"
local stats = require "bench.stats"

local ROUNDS = tonumber(arg[1]) or 20

local APP = [[
local tide = require "moontide"
tide.config { manage = false, log = { level = "warn" } }
tide.http.listen { port = tonumber(os.getenv "PORT") }
local count = tonumber(os.getenv "COUNT")
tide.root:spawn(function()
  for i = 1, count // 2 do tide.spawn(tide.sleep, 1e6) end
end)
for i = 1, count // 2 do tide.root:start({ name = "nap " .. i, timeout = 1e6 }, tide.sleep, 1e6) end
local worst = 0
function take_worst()
  local late = worst
  worst = 0
  return late
end
tide.root:spawn(function()
  while true do
    local due = tide.now() + 0.001
    tide.sleep(0.001)
    worst = math.max(worst, tide.now() - due)
  end
end)
]]

local COMMANDS = {
  { "nobody asks", "tide.sleep(0.05)" },
  { "tasks()", "tasks()" },
  { "tasks { max = 500 }", "tasks { max = 500 }" },
  { "tasks { find = ... }", "tasks { find = 'nap 77' }" },
  { "where(unknown)", "pcall(where, 123456789)" },
  { "timers()", "timers()" },
  { "status()", "status()" },
}

local function value(client, source)
  local reply = client:eval(source)
  assert(reply.status == "ok", reply.error and reply.error.message)
  return reply
end

local function measure(client, source)
  local took, late = {}, {}
  for i = 1, ROUNDS do
    value(client, "take_worst()")
    took[i] = value(client, source).ms
    late[i] = tonumber(value(client, "take_worst()").text) * 1000
  end
  return took, late
end

for _, count in ipairs { 10000, 200000 } do
  local app = proc.start { script = APP, env = { COUNT = count } }
  local client = console.connect(app)
  value(client, "tide.sleep(0.5)")
  print(("%-28s %-24s %s"):format(count .. " tasks", "ms: p50 p95 max", "loop late, ms"))
  for _, command in ipairs(COMMANDS) do
    local took, late = measure(client, command[2])
    print(("%-28s %6.1f %6.1f %6.1f     %6.2f %6.2f %6.2f"):format(command[1], stats.median(took),
      stats.percentile(took, 0.95), stats.max(took), stats.median(late),
      stats.percentile(late, 0.95), stats.max(late)))
  end
  client:close()
  proc.cleanup()
end
