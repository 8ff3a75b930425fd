--- From a request to the task that answers it.

local core = require "moontide.core"
local lazy = require "moontide.lazy"
local task = require "moontide.task"

local events, exchange = lazy "moontide.http.events", lazy "moontide.http.exchange"
local broken, reply, text = core.http.broken, core.http.reply, core.http.text
local is_over, set_handler = core.http.is_over, core.http.handler
local start_task, root = task.start, task.root
local write_log = core.log.write

local M = {}

-- By route: what is called for a request, and the options of the tasks in which it is.
local handlers, options = {}, {}
-- By slot: the tasks that outlived their first slice (for status and the exit report).
local tasks = {}
M.tasks = tasks

local function log_failure(t)
  write_log(3, "http", "handler failed", "route", t.name, "outcome", t.outcome,
    "error", require("moontide.pipeline.record").text(t.error), "traceback", t.stack)
end

-- A handler that ended without having answered.
local function failed(t, x)
  local err = t.error
  if exchange.is_error(err) then
    local ok, why = reply(x, err.status, err.message, err.headers, "text/plain; charset=utf-8")
    if ok then return end
    if why == "aborted" then return broken(x, 500) end -- its client has left: nobody's failure
  end
  if t.outcome == "cancelled" then return broken(x, 503) end
  if exchange.is_gone(err) then return broken(x, 500) end
  log_failure(t)
  broken(x, t.outcome == "timed_out" and 503 or 500)
end

local function ended(t)
  local slot = t.request_slot
  if tasks[slot] == t then tasks[slot] = nil end
  if t.outcome ~= "ok" then failed(t, t.request) end
end

-- ---- called by the room -----------------------------------------------------------------------
--
-- Most requests come here never: C runs their handler in a task of its own and answers the text
-- that it returns (core/lua/http_serve.c).

local room = { root = root, options = options }

function room.wake(...) events.wake(...) end

function room.unbound(...) events.unbound(...) end

-- The first slice of a handler is over, and it awaits or has failed.
local function began(t, x, slot)
  t.request, t.request_slot = x, slot
  tasks[slot] = t
end

-- It lives. A client that left while it ran its first slice had nobody to tell.
local function kept(t, x)
  if not is_over(x) then return end
  local watched = t.opts.watched
  if watched == nil then watched = x.is_stream end
  if watched then t:cancel("aborted") end
end

local function body(x, handler)
  local a, b, c = handler[1](x, handler[2] or x)
  if not text(x, a, b) then exchange.answer(x, a, b, c) end
end

-- The request of slot `slot` is for route `id`, and C leaves it to us.
local function start(id, x, slot)
  local t = start_task(options[id], body, x, handlers[id])
  began(t, x, slot)
  kept(t, x)
end

function room.abort(slot, why)
  local t = tasks[slot]
  tasks[slot] = nil
  if t then t:cancel(why) end
end

-- What all answers need comes with the first request, not with the start.
function room.start(...)
  room.start, room.answer = start, exchange.answer
  room.began, room.kept, room.wake = began, kept, events.wake
  core.http.set_handlers(room)
  return start(...)
end

core.http.set_handlers(room)

-- ---- routes -----------------------------------------------------------------------------------

-- A handler with a limit needs a deadline, which the library gives to its task.
local function tell(id)
  local handler, limited = handlers[id], options[id].timeout ~= nil
  set_handler(id, not limited and handler[1], handler[2])
end

--- Adds a handler; the number is what C calls the route.
---@param name string "GET /orders/:id"
---@param handler { [1]: function, [2]: any } what is called with the request and, as its second
--- argument, [2] or the request again
---@param site string
---@param stream boolean|nil it may go on for ever
---@param watched boolean|nil it is cancelled when its client leaves
---@return integer id
function M.add(name, handler, site, stream, watched)
  local id = #handlers + 1
  handlers[id] = handler
  options[id] = {
    name = name, kind = "handler", scope = root, site = site, on_end = ended,
    detached_errors = true, stream = stream, watched = watched,
  }
  tell(id)
  return id
end

--- Puts something around a handler.
---@param id integer
---@param wrapper fun(handler: table): table
function M.wrap(id, wrapper)
  handlers[id] = wrapper(handlers[id])
  tell(id)
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
  tell(id)
end

--- The same for those that say nothing themselves and are no streams.
---@param ids integer[]
function M.limit_others(ids, seconds, name)
  for _, id in ipairs(ids) do
    local o = options[id]
    if not (o.limited or o.stream) then M.limit(id, seconds, name) end
  end
end

return M
