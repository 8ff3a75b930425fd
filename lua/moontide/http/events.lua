--- Who waits for what of an exchange: between the C room's wake-ups and tasks.

local core = require "moontide.core"
local task = require "moontide.task"

local slot_of = core.http.slot

local M = {
  --- Set once, when the process begins to drain.
  draining = task.event("draining"),
}

-- The waiter of each slot that waits, by slot.
local waiters = {}

--- Suspends the running task until the exchange has bytes, room, or is over. Several tasks may
--- wait; all go on.
---@async
---@param x moontide.Request
---@param what string for status
---@return string|nil why nothing more can be read or written
function M.wait(x, what)
  local slot = slot_of(x)
  local waiter, behind = task.waiter(what), waiters[slot]
  -- Those who gave up (a timeout around a read, again and again) leave their waiters here.
  while behind and not behind:is_waited_for() do behind = behind.behind end
  waiter.behind = behind
  waiters[slot] = waiter
  return waiter:wait()
end

--- What the slot waited for is there.
---@param slot integer
---@param lost string|nil why it will never be
function M.wake(slot, lost)
  local waiter = waiters[slot]
  waiters[slot] = nil
  while waiter do
    waiter:wake(lost)
    waiter = waiter.behind
  end
end

-- Unbinds and drains that are under way, by listener.
local pending = { [true] = {}, [false] = {} }

--- Waits until the unbind (drain = false) or the drain of a listener is complete, having begun it.
---@async
---@param listener userdata
---@param drain boolean
---@param start fun(listener: userdata)
function M.complete(listener, drain, start)
  local waiter = task.waiter(drain and "the last request" or "the accept queue")
  pending[drain][listener] = waiter
  start(listener)
  waiter:wait()
end

--- Called by the room.
function M.unbound(listener, drain)
  local waiter = pending[drain][listener]
  if waiter then
    pending[drain][listener] = nil
    waiter:wake(true)
  end
end

return M
