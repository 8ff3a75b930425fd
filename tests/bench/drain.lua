--- What a stop costs clients, beside other servers.
---
---     lua5.4 tests/bench/drain.lua TOOLS RUNS [PART...]    (scripts/bench.sh drain does)
---
--- PART is "silent", "queue", "exit", "delay" or "lost"; default: all, the load at the end, for it
--- leaves tens of thousands of closed connections in the kernel's tables. RUNS is how often
--- moontide is stopped under each load; the others, and what takes seconds, are stopped less often.
--- $BENCH_SERVERS names those to compare. The server is on the first CPU, clients on the second.
local drain = require "support.drain"
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"
local servers = require "bench.drain_servers"
local stats = require "bench.stats"

local TOOLS, RUNS = assert(arg[1], "where the tools are"), tonumber(arg[2]) or 100
local FEW = math.max(3, RUNS // 10)
local IDLE, IN_FLIGHT, QUEUED = 5000, 200, 50
local PATIENCE = 15 -- seconds until a server that does not end is called hung

local list = servers.installed(TOOLS)
local failed = false

local function on_second_cpu(clients)
  loop.wait(function() return clients.pid end, 1)
  proc.run {
    program = "taskset", argv = { "-a", "-p", "-c", "1", clients.pid }, manage = false,
  }
  return clients
end

local function clients(process, options)
  options.port = process.port
  options.path = options.path or "/orders/42"
  return on_second_cpu(drain.clients(options))
end

-- Waits for the end of a server, not for ever; seconds from its signal, or nil.
local function ended(process)
  loop.try(function() return process.exited_at end, PATIENCE)
  return process.exited_at and process:seconds_to_end()
end

local function lost_of(result)
  local sum = 0
  for _, fault in ipairs(drain.faults(result)) do sum = sum + tonumber(fault:match "=(%d+)") end
  return sum
end

local function repeated(count, measure)
  local found = {}
  for i = 1, count do
    found[i] = measure()
    proc.cleanup()
  end
  return found
end

local function verdict(server, met)
  if server.key ~= "moontide" then return "" end
  failed = failed or not met
  return met and "  met" or "  missed"
end

local function ms(seconds) return seconds and ("%.1f"):format(seconds * 1000) or "-" end

-- ---- requests lost under load ------------------------------------------------------------------

local function stop_under_load(server, mode)
  local process = servers.start(server, "200ms")
  local load = clients(process, { mode = mode, clients = 64, for_ms = 3000 })
  load:wait_stdout "(running)\n"
  loop.turn_for(0.02 + math.random() * 0.08)
  process:signal(server.signal)
  return drain.result(load)
end

local function lost()
  print(("\nrequests lost by a stop under load: 64 clients, %d runs (others %d), linger 0.2 s")
    :format(RUNS, FEW))
  print(("%-12s %-24s %9s %6s %6s %9s"):format("", "clients", "median", "max", "all", "answered"))
  local kinds = {
    { "keep", "closed loop" }, { "think", "pause of 0 to 4 ms" }, { "close", "one request each" },
  }
  for _, kind in ipairs(kinds) do
    for _, server in ipairs(list) do
      local runs = repeated(server.key == "moontide" and RUNS or FEW, function()
        return stop_under_load(server, kind[1])
      end)
      local counts, all, answered = {}, 0, 0
      for i, result in ipairs(runs) do
        counts[i] = lost_of(result)
        all, answered = all + counts[i], answered + result.answered
      end
      print(("%-12s %-24s %9d %6d %6d %9d  at most 0%s"):format(server.name, kind[2],
        stats.median(counts), stats.max(counts), all, answered, verdict(server, all == 0)))
    end
  end
end

-- ---- connected, not accepted -------------------------------------------------------------------

local function stop_with_a_queue(server)
  local process = servers.start(server)
  servers.signal_all(process, "STOP")
  local queued = clients(process, { mode = "close", clients = QUEUED, once = true })
  queued:wait_stdout "(sent)\n"
  process:signal(server.signal)
  servers.signal_all(process, "CONT")
  return drain.result(queued).answered
end

local function queue()
  print(("\n%d clients connected and sent, not accepted when the signal comes: answered"):format(
    QUEUED))
  for _, server in ipairs(list) do
    local answered = repeated(FEW, function() return stop_with_a_queue(server) end)
    print(("%-12s median %2d, least %2d of %d%s"):format(server.name, stats.median(answered),
      stats.min(answered), QUEUED, verdict(server, stats.min(answered) == QUEUED)))
  end
end

-- ---- from the last answer to the exit ----------------------------------------------------------

local function hold_idle(process)
  local idle = clients(process, { mode = "idle", clients = IDLE, for_ms = 60000 })
  idle:wait_stdout("(running)\n", 20)
  return idle
end

local function stop_with_in_flight(server)
  local process = servers.start(server)
  hold_idle(process)
  local slow = clients(process, {
    mode = "close", path = "/slow?ms=900", clients = IN_FLIGHT, once = true, for_ms = 60000,
    pid = process.pid,
  })
  slow:wait_stdout "(sent)\n"
  loop.turn_for(0.4)
  process:signal(server.signal)
  local result = drain.result(slow)
  return {
    failed = IN_FLIGHT - result.answered,
    exit = result.exit_at and result.exit_at - result.last_answer_at or math.huge,
  }
end

local function exit()
  print(("\n%d idle, %d in flight that end 500 ms after the signal, linger 0"):format(IDLE,
    IN_FLIGHT))
  print(("%-12s %8s %22s"):format("", "failed", "last answer to exit, ms"))
  for _, server in ipairs(list) do
    local found = repeated(FEW, function() return stop_with_in_flight(server) end)
    local exits = stats.column(found, "exit")
    local worst = stats.max(stats.column(found, "failed"))
    print(("%-12s %8d %10s (%s-%s)  0 and 2 ms%s"):format(server.name, worst,
      ms(stats.median(exits)), ms(stats.min(exits)), ms(stats.max(exits)),
      verdict(server, worst == 0 and stats.median(exits) <= 0.002)))
  end
end

-- ---- an answer that is due while idle ones are closed ------------------------------------------

-- How late an answer comes that is due 30 ms after the signal.
local function lateness(server)
  local process = servers.start(server)
  hold_idle(process)
  local conn = assert(http.connect(process.port))
  local due = loop.now() + 0.3
  conn:send_request("GET", "/slow?ms=300")
  while loop.now() < due - 0.03 do loop.turn_for(0.001) end
  process:signal(server.signal)
  assert(conn:read_response(PATIENCE))
  return loop.now() - due
end

local function delay()
  print(("\nan answer due 30 ms after the signal, while %d idle connections are closed: late by")
    :format(IDLE))
  local medians = {}
  local order = {}
  for _, server in ipairs(list) do -- moontide is judged by nginx, so it comes last
    table.insert(order, server.key == "moontide" and #order + 1 or 1, server)
  end
  for _, server in ipairs(order) do
    local found = repeated(FEW, function() return lateness(server) end)
    medians[server.key] = stats.median(found)
    local bar = medians.nginx
    local judged = bar and ("  half of nginx's%s"):format(verdict(server,
      medians[server.key] <= bar / 2)) or ""
    print(("%-12s %8s ms (%s-%s)%s"):format(server.name, ms(medians[server.key]),
      ms(stats.min(found)), ms(stats.max(found)), server.key == "moontide" and judged or ""))
  end
end

-- ---- one that never says anything --------------------------------------------------------------

local function stop_with_a_silent_one(server)
  local process = servers.start(server)
  clients(process, { mode = "silent", clients = 1, for_ms = 60000 }):wait_stdout "(running)\n"
  loop.turn_for(1.2)
  process:signal(server.signal)
  return ended(process) or math.huge
end

local function silent()
  print("\none connection older than 1 s that never sends a byte, linger 0: signal to exit")
  for _, server in ipairs(list) do
    local own = server.key == "moontide"
    local found = repeated(own and FEW or 1, function() return stop_with_a_silent_one(server) end)
    local median = stats.median(found)
    print(("%-12s %s ms  at most 50 ms%s"):format(server.name,
      median == math.huge and "> " .. ms(PATIENCE) or ms(median), verdict(server, median <= 0.05)))
  end
end

local PARTS = { lost = lost, queue = queue, exit = exit, delay = delay, silent = silent }
local wanted = { table.unpack(arg, 3) }
if #wanted == 0 then wanted = { "silent", "queue", "exit", "delay", "lost" } end
for _, name in ipairs(wanted) do
  if not PARTS[name] then
    io.stderr:write(("drain.lua: no part is named %q: silent, queue, exit, delay, lost\n"):format(
      name))
    os.exit(64)
  end
end
if not drain.descriptors(20000) then
  io.stderr:write "drain.lua: raise the limit of open files (ulimit -n 20000)\n"
  os.exit(1)
end
print(("drain: %d CPUs, moontide beside %d others"):format(#require "luv".cpu_info(), #list - 1))
for _, name in ipairs(wanted) do PARTS[name]() end
os.exit(failed and 1 or 0)
