--- The host's own families: the process, under the names that all Prometheus clients use.
local M = {}

-- Linux counts a process's start in these, on every architecture.
local TICKS_PER_SECOND = 100

local function read(path)
  local file = io.open(path, "r")
  if not file then return "" end
  local text = file:read("a") or ""
  file:close()
  return text
end

--- When the process began, Unix time; nil when /proc does not say.
local function started()
  -- The second field is the program's name and may hold anything, also ")".
  local fields = read("/proc/self/stat"):match(".*%)%s(.*)")
  local boot = tonumber(read("/proc/stat"):match("btime (%d+)"))
  if not (fields and boot) then return nil end
  local i = 2
  for field in fields:gmatch("%S+") do
    i = i + 1
    if i == 22 then return boot + tonumber(field) / TICKS_PER_SECOND end
  end
end

local function open_files(uv)
  local scan, count = uv.fs_scandir("/proc/self/fd"), 0
  while scan and uv.fs_scandir_next(scan) do count = count + 1 end
  return count > 0 and count - 1 or 0 -- less the one for looking
end

local function cpu_seconds(uv)
  local usage = uv.getrusage()
  local function seconds(time) return time.sec + time.usec / 1e6 end
  return seconds(usage.utime) + seconds(usage.stime)
end

local function declare_fixed(metrics)
  local start = started()
  if start then
    metrics.gauge("process_start_time_seconds", "When the process began, Unix time."):set(start)
  end
  local limit = tonumber(read("/proc/self/limits"):match("Max open files%s+(%d+)"))
  if limit then metrics.gauge("process_max_fds", "Files it may have open."):set(limit) end
end

---@param metrics table the registry
function M.declare(metrics)
  local uv = require "luv"
  declare_fixed(metrics)
  local cpu = metrics.counter("process_cpu_seconds_total", "Processor time used.")
  local resident = metrics.gauge("process_resident_memory_bytes", "Memory in use.")
  local virtual = metrics.gauge("process_virtual_memory_bytes", "Address space in use.")
  local open = metrics.gauge("process_open_fds", "Files it has open.")
  metrics.on_collect(function()
    cpu:mirror(cpu_seconds(uv))
    resident:set(uv.resident_set_memory())
    local kibibytes = tonumber(read("/proc/self/status"):match("VmSize:%s+(%d+)"))
    if kibibytes then virtual:set(kibibytes * 1024) end
    open:set(open_files(uv))
  end)
end

return M
