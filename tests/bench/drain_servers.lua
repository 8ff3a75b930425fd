--- The servers whose stop the drain bench measures, one alive at a time, on the first CPU. Each is
--- stopped as its manual says: nginx and HAProxy have signals of their own for that.
local uv = require "luv"
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local M = {}

local HERE = (os.getenv "MOONTIDE_SOURCE" or ".") .. "/tests/bench/"
local NGINX_LUA = "/usr/lib/nginx/modules/ngx_http_lua_module.so"

local function which(name)
  for dir in (os.getenv "PATH" .. ":/usr/sbin"):gmatch "[^:]+" do
    if uv.fs_stat(dir .. "/" .. name) then return dir .. "/" .. name end
  end
end

-- A file of tests/bench/servers in a new directory, with its places filled in.
local function filled_in(name, port)
  local dir = proc.temp_dir()
  local text = assert(proc.read_file(HERE .. "servers/" .. name))
  proc.write_file(dir .. "/" .. name, (text:gsub("@(%u+)@", { DIR = dir, PORT = port })))
  return dir, dir .. "/" .. name
end

local function nginx(port)
  local dir, file = filled_in("drain_nginx.conf", port)
  return { which "nginx", "-p", dir, "-c", file }
end

local function haproxy(port)
  local dir, file = filled_in("drain_haproxy.cfg", port)
  proc.write_file(dir .. "/slow.lua", assert(proc.read_file(HERE .. "servers/slow.lua")))
  return { which "haproxy", "-db", "-f", file }
end

---@class bench.Drained
---@field key string
---@field name string
---@field signal string
---@field command fun(port: integer): string[]
---@field there any
---@field env? table

--- Those that are installed; $BENCH_SERVERS names some of them.
---@param tools string where bench_tools were built
---@return bench.Drained[]
function M.installed(tools)
  local all = {
    { key = "moontide", name = "moontide", signal = "TERM", there = true,
      command = function() return { os.getenv "MOONTIDE", HERE .. "apps/drain.lua" } end },
    { key = "nginx", name = "nginx", signal = "QUIT", command = nginx,
      there = which "nginx" and uv.fs_stat(NGINX_LUA) },
    { key = "haproxy", name = "HAProxy", signal = "USR1", command = haproxy,
      there = which "haproxy" },
    { key = "go", name = "Go net/http", signal = "TERM", there = uv.fs_stat(tools .. "/go_server"),
      command = function(port) return { tools .. "/go_server", port } end },
    { key = "node", name = "Node http", signal = "TERM", there = which "node",
      command = function(port) return { which "node", HERE .. "servers/server.js", port } end },
  }
  local wanted, list = os.getenv "BENCH_SERVERS", {}
  for _, server in ipairs(all) do
    local asked = not wanted or ("," .. wanted .. ","):find("," .. server.key .. ",", 1, true)
    if asked and server.there then
      list[#list + 1] = server
    elseif asked then
      io.stderr:write(server.name, " is left out: not installed (scripts/setup.sh --bench)\n")
    end
  end
  return list
end

local function children(pid)
  local text = proc.read_file(("/proc/%d/task/%d/children"):format(pid, pid)) or ""
  local list = {}
  for child in text:gmatch "%d+" do list[#list + 1] = math.tointeger(child) end
  return list
end

--- Starts one and waits for its first answer.
---@param server bench.Drained
---@param linger? string of moontide; default "0s"
---@return test.Process
function M.start(server, linger)
  local port = proc.free_port()
  local process = proc.start {
    program = "taskset", argv = { "-c", "0", table.unpack(server.command(port)) },
    env = { PORT = port, LINGER = linger or "0s", KEEP_ALIVE_MS = server.keep_alive_ms },
    manage = false,
  }
  process.port = port
  loop.wait(function()
    if process.exited_at then error(server.name .. " ended: " .. process:stderr(), 0) end
    local response = http.get(port, "/orders/42", { timeout = 2 })
    return response and response.status == 200
  end, 10, server.name)
  return process
end

--- Sends a signal to it and all its children.
---@param process test.Process
---@param signal string
function M.signal_all(process, signal)
  process:signal(signal)
  for _, pid in ipairs(children(process.pid)) do uv.kill(pid, "sig" .. signal:lower()) end
end

return M
