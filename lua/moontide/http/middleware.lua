--- Middleware: what stands around a handler, made one thing with it. Loaded with the first.

local core = require "moontide.core"

local running, current = core.http.running, core.task.current

local M = {}

-- The request that a handler of this task, or of one that owns it, was called with.
local function request_here()
  local x = running()
  if x then return x end
  local t = current()
  while t do
    if t.request then return t.request end
    t = t.scope.owner
  end
  error("next(): outside of the request's task, pass the request: next(req)", 3)
end

-- What a middleware calls to go on. It is the same for all requests, so that none is made for each.
local function next_of(handler)
  local fn, second = handler[1], handler[2]
  if second then
    return function(req)
      return fn(req or request_here(), second)
    end
  end
  return function(req)
    if not req then req = request_here() end
    return fn(req, req)
  end
end

local function as_function(handler)
  local fn, second = handler[1], handler[2]
  return second and function(req) return fn(req, second) end or fn
end

-- Each middleware gets the request and what comes behind it. A table with `attach` makes a handler
-- of what comes behind it when the route is declared (tide.http.accepted, tide.http.idempotent).
-- A handler is a pair: what is called, and its second argument, if it is not the request again.
---@param handler { [1]: function, [2]: any }
---@param chain (function|table)[] the first is outermost
---@param route { server: moontide.Server, method: string, pattern: string, site: string }|nil of
--- tables with `attach`
---@return { [1]: function, [2]: any }
function M.compose(handler, chain, route)
  for i = #chain, 1, -1 do
    local step = chain[i]
    if type(step) == "function" then
      handler = { step, next_of(handler) }
    else
      handler = { step:attach(route, as_function(handler), table.move(chain, 1, i - 1, 1, {})) }
    end
  end
  return handler
end

return M
