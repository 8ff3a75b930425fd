--- Waiting in a test: turns luv's loop until something holds, never longer than
--- the bound, never blindly.
---
---     local loop = require "support.loop"
---     loop.wait(function() return file_exists(path) end, 5, "the pid file")
local uv = require "luv"

local M = {}

--- How much longer everything may take: 1, or $MOONTIDE_TEST_SCALE on a slow
--- machine. A bound says "hangs", it is no measurement.
M.scale = tonumber(os.getenv "MOONTIDE_TEST_SCALE") or 1

--- Seconds on a monotonic clock.
---@return number
function M.now()
  return uv.hrtime() / 1e9
end

-- Wakes the loop for as long as anybody waits; waits nest (a predicate may wait).
local ticker
local waiting = 0

--- Turns the loop until `predicate` returns a true value, and returns that; or
--- nil and a message when `timeout` has passed. The predicate is asked after
--- each turn, and every 10 ms for what the loop does not see.
---@param predicate fun(): any
---@param timeout number seconds
---@param what? string what is waited for, for the message
---@return any value
---@return string? message
function M.try(predicate, timeout, what)
  local deadline = M.now() + timeout * M.scale
  ticker = ticker or uv.new_timer()
  if waiting == 0 then ticker:start(10, 10, function() end) end
  waiting = waiting + 1
  local ok, value = pcall(predicate)
  while ok and not value and M.now() < deadline do
    uv.run("once")
    ok, value = pcall(predicate)
  end
  waiting = waiting - 1
  if waiting == 0 then ticker:stop() end
  if not ok then error(value, 0) end
  if value then return value end
  return nil, ("waited %.4g s in vain for %s"):format(timeout * M.scale, what or "a condition")
end

--- As `try`, raising when the time has passed.
---@param predicate fun(): any
---@param timeout number seconds
---@param what? string
---@return any value
function M.wait(predicate, timeout, what)
  local value, message = M.try(predicate, timeout, what)
  if not value then error(message, 2) end
  return value
end

--- Lets the loop turn for so long: for "nothing happens meanwhile", which cannot
--- be waited for in another way.
---@param seconds number
function M.turn_for(seconds)
  local till = M.now() + seconds
  M.try(function() return M.now() >= till end, seconds + 1)
end

return M
