--- From a request to the task that answers it.
---
--- Most requests come here never: C runs their handler in a task of its own and answers the text
--- that it returns (core/lua/http_serve.c).

local core = require "moontide.core"
local events = require "moontide.http.events"
local exchange = require "moontide.http.exchange"
local task = require "moontide.task"

local broken, reply, text = core.http.broken, core.http.reply, core.http.text
local is_over = core.http.is_over
local start_task = task.start
local write_log = core.log.write

local M = {}

-- By slot: the tasks that outlived their first slice.
local tasks = {}

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

-- The drain or the client's end cancels who works for it.
local function abort(slot, why)
  local t = tasks[slot]
  tasks[slot] = nil
  if t then t:cancel(why) end
end

local function body(x, handler)
  local a, b, c = handler[1](x, handler[2] or x)
  if not text(x, a, b) then exchange.answer(x, a, b, c) end
end

--- Puts itself into what C calls.
---@param room table of `dispatch`, with the `options` of each route
---@param handlers table[] by route
function M.install(room, handlers)
  local options = room.options
  for _, opts in ipairs(options) do opts.on_end = ended end
  room.ended, room.began, room.kept, room.abort = ended, began, kept, abort
  room.answer, room.wake = exchange.answer, events.wake
  -- The request of slot `slot` is for route `id`, and C leaves it to us.
  function room.start(id, x, slot)
    local t = start_task(options[id], body, x, handlers[id])
    began(t, x, slot)
    kept(t, x)
  end
end

return M
