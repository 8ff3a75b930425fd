--- Start-up, size and shutdown of a host with ten empty phases, beside servers
--- that do the least: runs all of them in turn, so that a noisy machine is noisy
--- for each, and prints medians and ratios.
---
---     lua5.4 tests/bench/lifecycle.lua TOOLS ROUNDS    (scripts/bench.sh does)
---
--- TOOLS holds `lifetime`, `bare_epoll`, and `go_server` where there is Go.
local proc = require "support.process"
local stats = require "bench.stats"

local tools, rounds = assert(arg[1]), tonumber(arg[2]) or 40
local here = (os.getenv "MOONTIDE_SOURCE" or ".") .. "/tests/bench/"
local moontide = assert(os.getenv "MOONTIDE", "set $MOONTIDE")

local function exists(path) return proc.read_file(path) ~= nil end

local function which(name)
  for dir in (os.getenv "PATH" .. ":/usr/sbin"):gmatch "[^:]+" do
    if exists(dir .. "/" .. name) then return dir .. "/" .. name end
  end
end

-- Each server: the command and the environment for a port it shall answer on.
local servers = {
  { name = "bare epoll", command = function(port) return { tools .. "/bare_epoll", port } end },
  {
    name = "moontide, 10 phases", path = "/health/ready",
    command = function() return { moontide, here .. "apps/ten_phases.lua" } end,
    env = function(port) return { MOONTIDE_MANAGE__PORT = port } end,
  },
}

local function add_peer(name, there, command)
  if not there then return end
  servers[#servers + 1] = { name = name, path = "/health/ready", command = command }
end

add_peer("Go net/http", exists(tools .. "/go_server"), function(port)
  return { tools .. "/go_server", port }
end)
local nginx, node = which "nginx", which "node"
add_peer("nginx", nginx, function(port)
  local dir = proc.temp_dir()
  local text = assert(proc.read_file(here .. "servers/nginx.conf"))
  proc.write_file(dir .. "/nginx.conf", (text:gsub("@DIR@", dir):gsub("@PORT@", port)))
  return { nginx, "-p", dir, "-c", dir .. "/nginx.conf" }
end)
add_peer("Node http", node, function(port) return { node, here .. "servers/server.js", port } end)

local function measure(server)
  local port = proc.free_port()
  local argv = { port, server.path or "/", 150, "--", table.unpack(server.command(port)) }
  local code, out, err = proc.run {
    program = tools .. "/lifetime", argv = argv, timeout = 60,
    env = server.env and server.env(port),
  }
  assert(code == 0, ("%s: %s"):format(server.name, err))
  local ready, rss, stop, status = out:match "^(%d+) (%d+) (%d+) (%d+)"
  server.code = tonumber(status)
  proc.cleanup()
  return { ready = tonumber(ready), rss = tonumber(rss), stop = tonumber(stop) }
end

for round = 0, rounds do
  for _, server in ipairs(servers) do
    server.runs = server.runs or {}
    local run = measure(server)
    -- The first round warms the page cache.
    if round > 0 then table.insert(server.runs, run) end
  end
end

local base = servers[1]
print(("%-22s %12s %8s %12s %10s %12s %5s"):format("exec to first 200", "median ms", "min",
  "x bare epoll", "RSS MB", "stop ms", "exit"))
for _, server in ipairs(servers) do
  local ready = stats.column(server.runs, "ready")
  -- A ratio of neighbours in time, not of two medians from different minutes.
  local ratios = {}
  for i, run in ipairs(server.runs) do ratios[i] = run.ready / base.runs[i].ready end
  print(("%-22s %12.2f %8.2f %12.2f %10.2f %12.2f %5d"):format(server.name,
    stats.median(ready) / 1000, stats.min(ready) / 1000, stats.median(ratios),
    stats.median(stats.column(server.runs, "rss")) / 1024,
    stats.median(stats.column(server.runs, "stop")) / 1000, server.code))
end
