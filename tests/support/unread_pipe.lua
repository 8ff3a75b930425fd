--- A host that logs to a pipe which nobody reads for a while: how late its loop
--- gets. A plain write would stand still until the reader comes back.
local loop = require "support.loop"
local proc = require "support.process"

local M = {}

-- Logs 4 KiB every 2 ms, more than a pipe and the ring hold together, and
-- measures how late a sleep of 2 ms comes back.
local SCRIPT = [[
local tide = require "moontide"
tide.config { name = "unread", shutdown = { linger = 0 } }
local seconds = tonumber(os.getenv "SECONDS")
tide.startup:phase("measure")
tide.startup:task("measure", "log", function()
  local filler = ("x"):rep(4096)
  local begin, worst, count = tide.now(), 0, 0
  while tide.now() - begin < seconds do
    local before = tide.now()
    tide.sleep("2ms")
    worst = math.max(worst, tide.now() - before - 0.002)
    count = count + 1
    tide.log.info("filler", { filler = filler, count = count })
  end
  print(("worst=%.6f count=%d"):format(worst, count))
  io.stdout:flush()
end)
tide.spawn(function() tide.sleep "1h" end)
]]

--- Runs it; the log is not read for `seconds`, then read to the end.
---@param seconds number
---@return number worst lag in seconds
---@return integer count records written
---@return test.Process process ended
function M.run(seconds)
  local process = proc.start {
    script = SCRIPT, hold_stderr = true, env = { SECONDS = seconds, MOONTIDE_LOG__FORMAT = "json" },
  }
  local worst, count = process:wait_stdout("worst=(%S+) count=(%d+)", seconds + 20)
  process:read_stderr()
  process:signal "TERM"
  process:wait()
  return tonumber(worst), math.tointeger(tonumber(count)), process
end

--- The same pipe and a writer that blocks: what is being avoided.
---@param seconds number
---@return number stall in seconds
function M.naive(seconds)
  local process = proc.start {
    program = "/bin/sh", hold_stderr = true,
    argv = { "-c", "head -c 1000000 /dev/zero >&2; echo done" },
  }
  local from = loop.now()
  loop.turn_for(seconds)
  process:read_stderr()
  process:wait_stdout "(done)"
  return loop.now() - from
end

return M
