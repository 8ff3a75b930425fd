--- How much memory a process holds.
---
---     local before = memory.resident(app.pid)
local M = {}

--- For `env` of a process whose memory is measured: the sanitizer shall not keep what was freed.
M.env = { ASAN_OPTIONS = "quarantine_size_mb=1" }

--- Resident bytes of a process; none of one that has ended.
---@param pid integer
---@return integer
function M.resident(pid)
  local file = io.open(("/proc/%d/status"):format(pid))
  local kib = file and file:read("a"):match "VmRSS:%s+(%d+) kB" or 0
  if file then file:close() end
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
