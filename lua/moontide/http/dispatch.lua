--- Routes by number, as C asks for them. What happens to a request is in `handling`, which comes
--- with the first.

local core = require "moontide.core"
local task = require "moontide.task"

local set_handler = core.http.handler

local M = {}

-- By route: what is called for a request, and the options of the tasks in which it is.
local handlers, options = {}, {}

-- What C calls (core.http.set_handlers). It leaves every request to `start` until it is told of the
-- rest.
local room = { root = task.root, options = options }

function room.unbound(...) require("moontide.http.events").unbound(...) end

function room.start(...)
  require("moontide.http.handling").install(room, handlers)
  core.http.set_handlers(room)
  return room.start(...)
end

core.http.set_handlers(room)

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
    name = name, kind = "handler", scope = room.root, site = site, on_end = room.ended,
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
