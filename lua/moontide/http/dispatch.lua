--- From a request to the task that answers it.

local core = require "moontide.core"
local events = require "moontide.http.events"
local exchange = require "moontide.http.exchange"
local task = require "moontide.task"

local answer, broken, reply = exchange.answer, core.http.broken, core.http.reply
local start_task, pump = task.start, task.pump
local write_log = core.log.write

local M = {}

-- By route: the composed handler, and the options of its tasks.
local handlers, options = {}, {}
-- By slot: what runs there.
local tasks, exchanges = {}, {}

local function run(handler, x)
  return answer(x, handler(x, x))
end

-- Where a task answers; tasks that end badly are few, so this may search.
local function find(t)
  for slot, other in pairs(tasks) do
    if other == t then return slot, exchanges[slot] end
  end
end

local function log_failure(t)
  write_log(3, "http", "handler failed", "route", t.name, "outcome", t.outcome,
    "error", tostring(t.error), "traceback", t.stack or "")
end

-- A handler that ended without having answered.
local function ended(t)
  if t.outcome == "ok" then return end
  local slot, x = find(t)
  if not slot then return end
  tasks[slot], exchanges[slot] = nil, nil
  if exchange.is_error(t.error) then
    if reply(x, t.error.status, t.error.message, nil, "text/plain; charset=utf-8") then return end
  end
  if t.outcome == "cancelled" then return broken(x, 503) end
  log_failure(t)
  broken(x, t.outcome == "timed_out" and 503 or 500)
end

--- Called by the room: the request of slot `slot` is for route `id`. The task runs at once, as far
--- as it does not await.
local function start(id, x, slot)
  local t = start_task(options[id], run, handlers[id], x)
  tasks[slot], exchanges[slot] = t, x
  pump()
end

local function abort(slot, why)
  local t = tasks[slot]
  tasks[slot], exchanges[slot] = nil, nil
  if t then t:cancel(why) end
end

--- Adds a handler; the number is what C calls the route.
---@param name string "GET /orders/:id"
---@param handler fun(req: moontide.Request, res: moontide.Response): ...
---@param site string
---@return integer id
function M.add(name, handler, site)
  local id = #handlers + 1
  handlers[id] = handler
  options[id] = {
    name = name, kind = "handler", scope = task.root, site = site, on_end = ended,
    detached_errors = true,
  }
  return id
end

--- The tasks that answer requests now, by slot (for status and the exit report).
M.tasks = tasks

--- Replaces a handler, e.g. by one with middleware around it.
function M.wrap(id, wrapper)
  handlers[id] = wrapper(handlers[id])
end

--- Sets the time a handler may take (nil: any).
function M.set_timeout(seconds)
  for _, o in ipairs(options) do
    o.timeout, o.limit = seconds, seconds and "timeouts.handler" or nil
  end
end

core.http.set_handlers { start = start, wake = events.wake, abort = abort,
  unbound = events.unbound }

return M
