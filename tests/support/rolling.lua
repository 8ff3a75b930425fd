--- Two processes behind a proxy, restarted in turn under load.
---
---     local nodes = rolling.nodes { linger = "700ms" }
---     local proxy = rolling.haproxy(nodes)
---     local counts = rolling.under_load(nodes, proxy, 10)     -- raises what failed
local load = require "support.load"
local loop = require "support.loop"
local proc = require "support.process"
local uv = require "luv"

local M = {}

--- How many times both processes are restarted: $TIDE_ROLLING, or few, for CI.
---@param few integer
---@return integer
function M.rounds(few)
  return tonumber(os.getenv "TIDE_ROLLING") or few
end

---@class test.Node
---@field port integer
---@field manage_port integer
---@field executed string path of the file with the ids of executed POSTs
---@field app test.Process the running one

local function start(node)
  node.app = proc.start {
    script = load.APP,
    env = {
      PORT = node.port, MOONTIDE_MANAGE__PORT = node.manage_port, EXECUTED = node.executed,
      LINGER = node.linger,
    },
  }
  node.app.manage_port = node.manage_port
  node.app:wait_ready()
end

--- Two running processes, each with ports that it keeps over its restarts.
---@param options { linger: string }
---@return test.Node[]
function M.nodes(options)
  local nodes = {}
  for i = 1, 2 do
    nodes[i] = {
      port = proc.free_port(), manage_port = proc.free_port(), linger = options.linger,
      executed = proc.temp_dir() .. "/executed",
    }
    start(nodes[i])
  end
  return nodes
end

--- Says on standard output what a long run measured (with $TIDE_ROLLING only).
---@param what string
---@param rounds integer
---@param counts table of `Load:finish`
---@param more? table<string, integer>
function M.report(what, rounds, counts, more)
  if not os.getenv "TIDE_ROLLING" then return end
  local slowest = 0
  for _, kind in pairs(counts) do
    if type(kind) == "table" then slowest = math.max(slowest, kind.slowest_ms) end
  end
  print(("%s: %d rolling restarts of two, %d requests answered, %d failed, slowest %.0f ms")
    :format(what, rounds, counts.answered, counts.failed, slowest))
  for name, count in pairs(more or {}) do print(("  %s %d"):format(name, count)) end
end

-- SIGTERM, exit 0, start, ready; then the other one. As often as said, and no
-- further than the first failure of the clients.
local function restart(nodes, rounds, clients)
  for _ = 1, rounds do
    for _, node in ipairs(nodes) do
      local old = node.app
      old:signal "TERM"
      local code, signal = old:wait()
      if code ~= 0 then
        error(("restart: code %s, signal %s\n%s"):format(code, signal, old:stderr()), 2)
      end
      start(node)
      clients:check()
    end
  end
end

local CLIENTS = {
  keep_alive = 6, per_request = 4, pipelined = 2, post = 8, think = 10, pace = 2, slow = 30,
  body = 3000,
}

--- Restarts the nodes under a load of all kinds of clients through the proxy. Raises
--- when a request failed, a client had to try again, or a POST was executed twice or
--- without an answer. Without a proxy the clients go to the nodes themselves, and to
--- the other one when they are refused.
---@param nodes test.Node[]
---@param proxy test.Process?
---@param rounds integer
---@param options? test.LoadOptions what differs from the usual load
---@return table counts
function M.under_load(nodes, proxy, rounds, options)
  local all = proxy and { port = proxy.port }
    or { ports = { nodes[1].port, nodes[2].port }, retry_refused = true }
  for name, value in pairs(CLIENTS) do all[name] = value end
  for name, value in pairs(options or {}) do all[name] = value end
  local clients = load.start(all)
  restart(nodes, rounds, clients)
  local counts = clients:finish()
  for _, kind in ipairs { "keep_alive", "per_request", "pipelined", "post" } do
    assert(counts[kind].answered > 20, kind .. " had little to do")
    assert(counts[kind].retried == 0, kind .. " had to try again")
  end
  clients:check_executed { nodes[1].executed, nodes[2].executed }
  return counts
end

-- A proxy, once it answers through one of the nodes.
local function start_proxy(options, port)
  local proxy = proc.start(options)
  proxy.port = port
  local http = require "support.http_client"
  local last
  local fine, message = loop.try(function()
    local response, err = http.get(port, "/echo/hello", { timeout = 2 })
    last = response and response.status or err
    return not proxy:is_running() or last == 200
  end, 10, "the proxy to answer")
  if not fine or not proxy:is_running() then
    error(("%s: %s\n%s"):format(options.program, message or last, proxy:stderr()), 3)
  end
  return proxy
end

local HAPROXY = [[
global
  maxconn 2000
  nbthread 1
  stats socket SOCKET mode 600 level admin

defaults
  mode http
  timeout client 30s
  timeout server 30s
  timeout connect 2s
  timeout check 2s         # else it is inter, and a busy machine looks dead
  retries 3                # of connecting only: nothing has been sent yet
  option redispatch 1      # each of them to another server

frontend front
  bind 127.0.0.1:FRONT
  default_backend nodes

backend nodes
  balance roundrobin
  http-reuse REUSE
  option httpchk
  http-check send meth GET uri /health/ready ver HTTP/1.1 hdr Host moontide
  http-check expect status 200
  # rise < fall: who comes back is in before the next one is out
  default-server inter 100ms rise 1 fall 3
  server one 127.0.0.1:PORT1 check port MANAGE1
  server two 127.0.0.1:PORT2 check port MANAGE2
]]

local function fill(text, values)
  return (text:gsub("%u[%u%d]+", function(name) return values[name] end))
end

local function values(nodes, more)
  for i, node in ipairs(nodes) do
    more["PORT" .. i], more["MANAGE" .. i] = node.port, node.manage_port
  end
  more.FRONT = proc.free_port()
  return more
end

--- HAProxy in front of the nodes, asking their readiness.
---@param nodes test.Node[]
---@param options? { reuse?: string } of `http-reuse`, default "safe" as in HAProxy
---@return test.Process proxy `port` is where it listens
function M.haproxy(nodes, options)
  local dir = proc.temp_dir()
  local v = values(nodes, { SOCKET = dir .. "/stats", REUSE = options and options.reuse or "safe" })
  proc.write_file(dir .. "/haproxy.cfg", fill(HAPROXY, v))
  local proxy = start_proxy({
    program = "/usr/sbin/haproxy", argv = { "-db", "-f", dir .. "/haproxy.cfg" }, manage = false,
  }, v.FRONT)
  proxy.socket = v.SOCKET
  return proxy
end

--- What HAProxy itself counted for both servers together: `stot` (sessions), `wretr` and `wredis`
--- (connections tried again, and elsewhere), `econ` and `eresp` (it could not connect,
--- or got no answer), `hrsp_5xx`.
---@param proxy test.Process of `M.haproxy`
---@return table<string, integer>
function M.haproxy_counts(proxy)
  local pipe, answer, ended = uv.new_pipe(false), "", false
  pipe:connect(proxy.socket, function(err)
    assert(not err, err)
    pipe:write "show stat\n"
    pipe:read_start(function(_, data)
      answer, ended = answer .. (data or ""), not data
      if ended then pipe:close() end
    end)
  end)
  loop.wait(function() return ended end, 10, "HAProxy's counts")
  local names, sums = {}, { stot = 0, wretr = 0, wredis = 0, econ = 0, eresp = 0, hrsp_5xx = 0 }
  for name in answer:match("^# ([^\n]*)"):gmatch "([^,]*)," do names[#names + 1] = name end
  for line in answer:gmatch "nodes,[ot][nw][eo],[^\n]*" do
    local i = 0
    for value in line:gmatch "([^,]*)," do
      i = i + 1
      if sums[names[i]] then sums[names[i]] = sums[names[i]] + (tonumber(value) or 0) end
    end
  end
  return sums
end

local NGINX = [[
daemon off;
worker_processes 1;
pid DIR/pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
  access_log off;
  # All in memory: the worker of a root's nginx may not write here.
  client_body_buffer_size 1m;
  proxy_max_temp_file_size 0;
  client_body_temp_path DIR/body;
  proxy_temp_path DIR/proxy;
  fastcgi_temp_path DIR/fastcgi;
  uwsgi_temp_path DIR/uwsgi;
  scgi_temp_path DIR/scgi;

  upstream nodes {
    # nginx does not ask who is ready; it learns by a refused connection, which
    # is safe to try elsewhere. It must not shun that server afterwards: it would
    # when the other one goes, and then there is none.
    server 127.0.0.1:PORT1 max_fails=0;
    server 127.0.0.1:PORT2 max_fails=0;
    keepalive 32;
    # Shorter than the linger: a kept connection is used in the linger, and told
    # to close by its answer, or nginx itself has closed it.
    keepalive_timeout IDLE;
  }

  server {
    listen 127.0.0.1:FRONT;
    location / {
      proxy_pass http://nodes;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_connect_timeout 2s;
      # Without non_idempotent: a POST that was sent is never sent again.
      proxy_next_upstream error timeout;
    }
  }
}
]]

--- nginx in front of the nodes, keeping connections to them.
---@param nodes test.Node[]
---@param options { idle: string } of the upstream's `keepalive_timeout`
---@return test.Process proxy `port` is where it listens
function M.nginx(nodes, options)
  local dir = proc.temp_dir()
  local v = values(nodes, { DIR = dir, IDLE = options.idle })
  proc.write_file(dir .. "/nginx.conf", fill(NGINX, v))
  return start_proxy({
    program = "/usr/sbin/nginx", argv = { "-c", dir .. "/nginx.conf", "-p", dir, "-e", "stderr" },
    manage = false,
  }, v.FRONT)
end

return M
