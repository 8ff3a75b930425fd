--- The servers that the HTTP bench compares: each is started once, pinned to the first CPU, and
--- stays alive. A peer that is not installed is left out (scripts/setup.sh --bench).
local uv = require "luv"
local client = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local M = {}

local HERE = (os.getenv "MOONTIDE_SOURCE" or ".") .. "/tests/bench/"
local PATH = "/orders/42"

local function exists(path) return uv.fs_stat(path) ~= nil end

local function which(name)
  for dir in (os.getenv "PATH" .. ":/usr/sbin"):gmatch "[^:]+" do
    if exists(dir .. "/" .. name) then return dir .. "/" .. name end
  end
end

-- A configuration of tests/bench/servers with its places filled in.
local function filled_in(name, places)
  local dir = proc.temp_dir()
  local text = assert(proc.read_file(HERE .. "servers/" .. name))
  places.DIR = dir
  proc.write_file(dir .. "/" .. name, (text:gsub("@(%u+)@", places)))
  return dir, dir .. "/" .. name
end

local function nginx(answer, modules)
  return function(port)
    local dir, file = filled_in("http_nginx.conf", {
      PORT = port, ANSWER = answer, MODULES = modules or "",
    })
    return { which "nginx", "-p", dir, "-c", file }
  end
end

local MODULES = "/usr/lib/nginx/modules/"
local LUA_MODULES = ("load_module %sndk_http_module.so;\nload_module %sngx_http_lua_module.so;")
  :format(MODULES, MODULES)
local LUA_ANSWER = [[content_by_lua_block {
  local answer = "order " .. ngx.var.id
  ngx.header.content_length = #answer
  ngx.print(answer)
}]]

--- All that could be compared: a name, a command for a port, whether it is there.
---@param tools string where bench_tools were built
---@return table[]
local function known(tools)
  return {
    { name = "raw libuv+llhttp", key = "raw", there = true,
      command = function(port) return { tools .. "/raw", port } end },
    { name = "moontide", key = "moontide", app = "orders", there = true,
      command = function() return { os.getenv "MOONTIDE", HERE .. "apps/orders.lua" } end },
    { name = "moontide", key = "moontide", app = "hello", path = "/hello", there = true,
      command = function() return { os.getenv "MOONTIDE", HERE .. "apps/hello.lua" } end },
    { name = "nginx, constant", key = "nginx", there = which "nginx" ~= nil,
      command = nginx [[return 200 "order 42";]] },
    { name = "nginx, Lua", key = "nginx-lua",
      there = which "nginx" ~= nil and exists(MODULES .. "ngx_http_lua_module.so"),
      command = nginx(LUA_ANSWER, LUA_MODULES) },
    { name = "HAProxy, constant", key = "haproxy", there = which "haproxy" ~= nil,
      command = function(port)
        local _, file = filled_in("haproxy.cfg", { PORT = port })
        return { which "haproxy", "-db", "-f", file }
      end },
    { name = "Go net/http", key = "go", there = exists(tools .. "/go_server"),
      command = function(port) return { tools .. "/go_server", port } end,
      env = { GOMAXPROCS = 1 } },
    { name = "Node http", key = "node", there = which "node" ~= nil,
      env = { KEEP_ALIVE_MS = 300000 },
      command = function(port) return { which "node", HERE .. "servers/server.js", port } end },
  }
end

-- The process and all below it, by what the kernel knows.
local function with_children(pid)
  local list = { pid }
  for i = 1, math.huge do
    if not list[i] then return list end
    local text = proc.read_file(("/proc/%d/task/%d/children"):format(list[i], list[i])) or ""
    for child in text:gmatch "%d+" do list[#list + 1] = math.tointeger(child) end
  end
end

local function answers(port, path)
  local response = client.get(port, path, { timeout = 2 })
  return response and response.status == 200
end

---@class bench.Server
---@field name string
---@field key string
---@field app string|nil which of tests/bench/apps it runs
---@field path string|nil what it is asked for, if not what the others are
---@field port integer
---@field pids integer[] of its processes

local function start(server)
  local env = { PORT = proc.free_port() }
  for name, value in pairs(server.env or {}) do env[name] = value end
  local argv = { "-c", "0", table.unpack(server.command(env.PORT)) }
  server.process = proc.start { program = "/usr/bin/taskset", argv = argv, env = env }
  server.port = env.PORT
  local ok, message = loop.try(function()
    return answers(server.port, server.path or PATH) or not server.process:is_running()
  end, 10)
  if not ok or not server.process:is_running() then
    error(("%s did not start: %s\n%s"):format(server.name, message or "it ended",
      server.process:stderr()), 0)
  end
  server.pids = with_children(server.process.pid)
  return server
end

--- Starts them all, or those of some keys.
---@param tools string
---@param only table<string, boolean>|nil
---@return bench.Server[] raw is the first
function M.start(tools, only)
  local started = {}
  for _, server in ipairs(known(tools)) do
    if only and not only[server.key] then
      goto continue
    elseif server.there then
      started[#started + 1] = start(server)
    else
      io.stderr:write(("%s is left out: not installed (scripts/setup.sh --bench)\n"):format(
        server.name))
    end
    ::continue::
  end
  return started
end

--- Resident bytes of a server's processes together.
---@param server bench.Server
---@return integer
function M.resident(server)
  local sum = 0
  for _, pid in ipairs(server.pids) do
    local text = proc.read_file(("/proc/%d/status"):format(pid)) or ""
    sum = sum + (tonumber(text:match "VmRSS:%s*(%d+)") or 0) * 1024
  end
  return sum
end

return M
