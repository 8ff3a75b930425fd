--- Cost of a request, beside a raw baseline and other servers: CPU time, throughput, memory.
---
---     lua5.4 tests/bench/http.lua TOOLS CYCLES [PART...]    (scripts/bench.sh http does)
---
--- TOOLS holds what `ninja bench_tools` builds. PART is "handler", "pipelined", "pipelined-app",
--- "health" or "idle"; default: all. $BENCH_SERVERS names those to compare ("moontide,nginx");
--- default: all there are.
---
--- All servers are alive at once, on the first CPU, the client is on the second. Short windows
--- follow each other, raw, X, raw, Y, raw, ...; a figure is a ratio of X to the mean of the windows
--- of raw beside it, because the machine's speed changes from minute to minute and its neighbours
--- come and go. A window in which others took more than an eighth of a CPU is repeated, so that a
--- busy machine makes the bench slow before it makes it wrong; how many stayed bad is told.
local proc = require "support.process"
local servers = require "bench.http_servers"
local stats = require "bench.stats"

local TOOLS, CYCLES = assert(arg[1], "where the tools are"), tonumber(arg[2]) or 10
local WINDOW_MS, FOREIGN, TRIES = 300, 0.12, 12
local IDLE, IDLE_BAR = 15000, 450

local CASES = {
  { key = "handler", path = "/orders/42", depth = 1, peers = true, bar = { "cpu", 1.15 },
    title = "handler with a path parameter, 30 routes, 3 middlewares, 50 connections, 8 headers" },
  { key = "pipelined", path = "/orders/42", depth = 16, peers = true, bar = { "rate", 0.75 },
    app = "hello", title = "a plain Lua handler, 30 routes, 16 requests pipelined, 8 headers" },
  { key = "pipelined-app", path = "/orders/42", depth = 16,
    title = "the handler with a path parameter and 3 middlewares, 16 requests pipelined" },
  { key = "health", path = "/health/ready", depth = 1, bar = { "cpu", 1.05 },
    title = "/health/ready, answered without Lua" },
}

-- ---- windows ----------------------------------------------------------------------------------

---@class bench.Window
---@field rate number answers a second
---@field cpu number us of the server's CPU time for an answer
---@field busy number share of its CPU that the server used
---@field foreign number CPUs that others used

---@return bench.Window
local function window(server, case)
  local code, out, err = proc.run {
    program = "/usr/bin/taskset", timeout = 30, manage = false,
    argv = { "-c", "1", TOOLS .. "/load", "-d", case.depth, "-t", WINDOW_MS, server.port,
      server.path or case.path, table.unpack(server.pids) },
  }
  if code ~= 0 then error(("%s, %s: %s"):format(server.name, case.key, err), 0) end
  local answers, seconds, cpu, _, foreign = out:match "(%S+) (%S+) (%S+) (%S+) (%S+)"
  return {
    rate = answers / seconds, cpu = cpu / answers * 1e6, busy = cpu / seconds,
    foreign = foreign / seconds,
  }
end

local disturbed = 0

-- The first quiet window of a few, else the least disturbed one.
local function quiet_window(server, case)
  local best
  for _ = 1, TRIES do
    local w = window(server, case)
    if not best or w.foreign < best.foreign then best = w end
    if best.foreign <= FOREIGN then return best end
  end
  disturbed = disturbed + 1
  return best
end

-- raw, X, raw, Y, ..., raw: a window of each server for each cycle, and its ratios.
local function measure(list, case)
  local raw, found = list[1], {}
  for _, server in ipairs(list) do found[server] = { windows = {}, cpu = {}, rate = {} } end
  local before = quiet_window(raw, case)
  for _ = 1, CYCLES do
    for i = 2, #list do
      local w = quiet_window(list[i], case)
      local after = quiet_window(raw, case)
      local f = found[list[i]]
      f.windows[#f.windows + 1] = w
      f.cpu[#f.cpu + 1] = w.cpu / ((before.cpu + after.cpu) / 2)
      f.rate[#f.rate + 1] = w.rate / ((before.rate + after.rate) / 2)
      table.insert(found[raw].windows, after)
      before = after
    end
  end
  return found
end

-- ---- tables -----------------------------------------------------------------------------------

local function spread(list)
  return ("%6.3f (%.3f-%.3f)"):format(stats.median(list), stats.percentile(list, 0.25),
    stats.percentile(list, 0.75))
end

local function verdict(case, found)
  if not case.bar then return "" end
  local kind, bar = table.unpack(case.bar)
  local value = stats.median(found[kind])
  local met = kind == "cpu" and value <= bar or kind == "rate" and value >= bar
  return ("  %s %.2f: %s"):format(kind == "cpu" and "at most" or "at least", bar,
    met and "met" or "missed")
end

local function show(list, case, found)
  print(("\n%s"):format(case.title))
  print(("%-20s %10s %5s %9s  %-22s %-22s"):format("", "answers/s", "busy", "CPU us", "CPU / raw",
    "throughput / raw"))
  for _, server in ipairs(list) do
    local f = found[server]
    local rate, cpu, busy = stats.median(stats.column(f.windows, "rate")),
      stats.median(stats.column(f.windows, "cpu")), stats.median(stats.column(f.windows, "busy"))
    local ratios = #f.cpu > 0 and spread(f.cpu) .. " " .. spread(f.rate) or ""
    print(("%-20s %10.0f %5.2f %9.2f  %s%s"):format(server.name, rate, busy, cpu, ratios,
      server.key == "moontide" and verdict(case, f) or ""))
  end
end

-- ---- idle connections -------------------------------------------------------------------------

local function idle(list)
  print(("\nresident bytes for each of %d idle connections, one request each"):format(IDLE))
  print(("%-20s %10s %10s %12s"):format("", "MB at 0", "MB then", "bytes each"))
  for _, server in ipairs(list) do
    window(server, CASES[1]) -- what is there after some work belongs to no connection
    local before = servers.resident(server)
    local holder = proc.start {
      program = TOOLS .. "/hold", argv = { server.port, "/orders/42", IDLE }, manage = false,
    }
    holder:wait_stdout("held", 60)
    local with = servers.resident(server)
    holder:kill()
    local each = (with - before) / IDLE
    local told = server.key == "moontide"
      and ("  at most %d: %s"):format(IDLE_BAR, each <= IDLE_BAR and "met" or "missed") or ""
    print(("%-20s %10.1f %10.1f %12.0f%s"):format(server.name, before / 2 ^ 20, with / 2 ^ 20, each,
      told))
  end
end

-- ---- all of it --------------------------------------------------------------------------------

local function wanted_servers()
  local names = os.getenv "BENCH_SERVERS"
  if not names then return nil end
  local only = { raw = true }
  for name in names:gmatch "[^,]+" do only[name] = true end
  return only
end

-- The raw baseline, moontide with the app of the case, and, where they can be compared, the peers.
local function servers_of(case, list)
  local app, these = case.app or "orders", {}
  for _, server in ipairs(list) do
    local wanted = server.app == app or not server.app and (case.peers or server.key == "raw")
    if wanted then these[#these + 1] = server end
  end
  return these
end

local function run(list, parts)
  for _, case in ipairs(CASES) do
    if not parts or parts[case.key] then
      local these = servers_of(case, list)
      show(these, case, measure(these, case))
    end
  end
  if not parts or parts.idle then idle(servers_of(CASES[1], list)) end
  if disturbed > 0 then
    print(("\n%d windows were disturbed by others in each of %d tries: measure again")
      :format(disturbed, TRIES))
  end
end

local function wanted_parts()
  if not arg[3] then return nil end
  local parts, known = {}, { idle = true }
  for _, case in ipairs(CASES) do known[case.key] = true end
  for i = 3, #arg do
    if not known[arg[i]] then error("no part of the HTTP bench: " .. arg[i], 0) end
    parts[arg[i]] = true
  end
  return parts
end

local ok, message = pcall(function()
  run(servers.start(TOOLS, wanted_servers()), wanted_parts())
end)
proc.cleanup()
if not ok then
  io.stderr:write("http.lua: ", tostring(message), "\n")
  os.exit(1)
end
