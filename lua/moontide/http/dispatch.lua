--- From a request to the task that answers it.

local core = require "moontide.core"
local events = require "moontide.http.events"
local lazy = require "moontide.lazy"
local task = require "moontide.task"

local exchange = lazy "moontide.http.exchange"
local broken, reply, text = core.http.broken, core.http.reply, core.http.text
local is_over = core.http.is_over
local run, start_task, root = task.run, task.start, task.root
local counts = core.task.counts
local write_log = core.log.write

local M = {}

-- By route: the body of its tasks, and their options.
local bodies, options = {}, {}
-- By slot: the tasks that outlived their first slice (for status and the exit report).
local tasks = {}
M.tasks = tasks

-- The request whose task is being started: one that ends at once has no other place yet.
local fresh, fresh_slot

local function log_failure(t)
  write_log(3, "http", "handler failed", "route", t.name, "outcome", t.outcome,
    "error", require("moontide.pipeline.record").text(t.error), "traceback", t.stack)
end

-- A handler that ended without having answered.
local function failed(t, x)
  local err = t.error
  if exchange.is_error(err) then
    if reply(x, err.status, err.message, err.headers, "text/plain; charset=utf-8") then return end
  end
  if t.outcome == "cancelled" then return broken(x, 503) end
  if exchange.is_gone(err) then return broken(x, 500) end
  log_failure(t)
  broken(x, t.outcome == "timed_out" and 503 or 500)
end

local function ended(t)
  local slot, x = t.request_slot or fresh_slot, t.request or fresh
  if tasks[slot] == t then tasks[slot] = nil end
  if t.outcome ~= "ok" then failed(t, x) end
end

-- A client that left while the task ran its first slice had nobody to tell.
local function keep(t, x, slot)
  if t.outcome then return end
  t.request, t.request_slot = x, slot
  tasks[slot] = t
  if t.opts.watched and is_over(x) then t:cancel("aborted") end
end

--- Called by the room: the request of slot `slot` is for route `id`. Its task runs at once, as far
--- as it does not await.
---@return boolean queued whether the pump has work now
local function start(id, x, slot)
  local opts = options[id]
  fresh, fresh_slot = x, slot
  if opts.timeout then
    keep(start_task(opts, bodies[id], x), x, slot)
    return true
  end
  local t = run(root, opts, bodies[id], x)
  if t then
    keep(t, x, slot)
    return true
  end
  return counts() > 0
end

local function abort(slot, why)
  local t = tasks[slot]
  tasks[slot] = nil
  if t then t:cancel(why) end
end

-- What all answers need comes with the first request, not with the start.
local answer
local handlers = { wake = events.wake, abort = abort, unbound = events.unbound }

function handlers.start(...)
  answer = exchange.answer
  handlers.start = start
  core.http.set_handlers(handlers)
  return start(...)
end

local function body_of(handler)
  return function(x)
    local a, b, c = handler(x, x)
    if not text(x, a, b) then answer(x, a, b, c) end
  end
end

--- Adds a handler; the number is what C calls the route.
---@param name string "GET /orders/:id"
---@param handler fun(req: moontide.Request, res: moontide.Response): ...
---@param site string
---@param stream boolean|nil it may go on for ever
---@param watched boolean|nil it is cancelled when its client leaves
---@return integer id
function M.add(name, handler, site, stream, watched)
  local id = #bodies + 1
  bodies[id] = body_of(handler)
  options[id] = {
    name = name, kind = "handler", scope = root, site = site, on_end = ended,
    detached_errors = true, handler = handler, stream = stream, watched = watched,
  }
  return id
end

--- Puts middleware around a handler.
---@param id integer
---@param wrapper fun(handler: function): function
function M.wrap(id, wrapper)
  bodies[id] = body_of(wrapper(options[id].handler))
end

--- Sets the time that the handler of a route may take; 0: any.
---@param id integer
---@param seconds number
---@param name string what says so
function M.limit(id, seconds, name)
  local o = options[id]
  o.limited = true
  o.timeout = seconds > 0 and seconds or nil
  o.limit = name
end

--- The same for those that say nothing themselves and are no streams.
---@param ids integer[]
function M.limit_others(ids, seconds, name)
  for _, id in ipairs(ids) do
    local o = options[id]
    if not (o.limited or o.stream) then M.limit(id, seconds, name) end
  end
end

core.http.set_handlers(handlers)

return M
