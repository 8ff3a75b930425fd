--- All live tasks, whatever scope they belong to, in pieces small enough that the loop does not
--- notice: between two of them everything else has its turn.
local core = require "moontide.core"
local task = require "moontide.task"

local live = core.task.live

local M = {}

--- Tasks between two turns of the others: a tenth of a millisecond.
local PIECE = 500

--- Whether the caller can await: in a task, and not in a coroutine that it has made, as observers
--- of the state run in.
---@return boolean
function M.can_wait()
  local t = core.task.current()
  return t ~= nil and t.body == coroutine.running() and coroutine.isyieldable()
end

--- Lets the others have their turn, where that can be.
---@async
function M.breathe()
  if M.can_wait() then task.sleep(0) end
end

-- Of its own, so that what ends while the others run is not kept.
local function piece(place, fn)
  local tasks, next_place = live(place, PIECE)
  for i = 1, #tasks do
    if fn(tasks[i]) then return nil end
  end
  return next_place
end

--- Calls `fn` with each live task, until it returns true. What begins or ends meanwhile may be
--- among them or not.
---@async
---@param fn fun(t: moontide.Task): boolean|nil
---@param at_once boolean|nil nobody else has a turn: for a dump, which is not to wait
function M.each(fn, at_once)
  local place = piece(1, fn)
  while place do
    if not at_once then M.breathe() end
    place = piece(place, fn)
  end
end

return M
