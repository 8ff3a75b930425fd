--- What a process uses of the processors.
---
---     local share = usage.cpu_share(app.pid, 1)       -- over the next second; 1 is one processor
local loop = require "support.loop"
local proc = require "support.process"
local uv = require "luv"

local M = {}

--- Seconds that a process has used of the processors.
---@param pid integer
---@return number
function M.cpu(pid)
  local sum = 0
  local dir = ("/proc/%d/task"):format(pid)
  for name in uv.fs_scandir_next, (uv.fs_scandir(dir)) do
    local text = proc.read_file(("%s/%s/schedstat"):format(dir, name))
    sum = sum + (text and tonumber(text:match "^(%d+)") or 0) / 1e9
  end
  return sum
end

--- The share of one processor that it uses while the test's loop turns for so long.
---@param pid integer
---@param seconds number
---@return number
function M.cpu_share(pid, seconds)
  local from, before = loop.now(), M.cpu(pid)
  loop.turn_for(seconds)
  return (M.cpu(pid) - before) / (loop.now() - from)
end

return M
