--- How much memory a process holds.
---
---     local before = memory.resident(app.pid)
local M = {}

--- For `env` of a process whose memory is measured: the sanitizer shall not keep what was freed.
M.env = { ASAN_OPTIONS = "quarantine_size_mb=1" }

--- Resident bytes of a process.
---@param pid integer
---@return integer
function M.resident(pid)
  local file = assert(io.open(("/proc/%d/status"):format(pid)))
  local kib = file:read("a"):match "VmRSS:%s+(%d+) kB"
  file:close()
  return math.tointeger(tonumber(kib)) * 1024
end

--- Watches the memory of a process: call the result now and then; it returns the most so far.
---@param pid integer
---@return fun(): integer
function M.watch(pid)
  local most = 0
  return function()
    most = math.max(most, M.resident(pid))
    return most
  end
end

return M
