--- A server: a listener, its routes and its middleware.

local core = require "moontide.core"
local dispatch = require "moontide.http.dispatch"
local lazy = require "moontide.lazy"

local middleware = lazy "moontide.http.middleware"
local route_options = lazy "moontide.http.route_options"

local http = core.http

---@class moontide.Server
---@field name string
---@field listener userdata
---@field middleware function[]
---@field routes table[]
local Server = {}
Server.__index = Server

local M = { Server = Server }

local METHODS = { "get", "post", "put", "patch", "delete", "head", "options" }

-- The script's line that declares a route.
local function caller_site()
  for level = 3, 12 do
    local info = debug.getinfo(level, "Sl")
    if not info then break end
    if info.what ~= "C" and not info.source:find("moontide/", 1, true) then
      return ("%s:%d"):format(info.short_src, info.currentline)
    end
  end
  return "?"
end

-- The arguments of a route: any middleware and options, then the handler.
local function parse(what, ...)
  local n = select("#", ...)
  local handler = n > 0 and select(n, ...)
  local opts, chain = {}, {}
  if type(handler) ~= "function" then
    error(("%s: the last argument must be the handler, a function"):format(what), 3)
  end
  for i = 1, n - 1 do
    local value = select(i, ...)
    if type(value) == "function" or type(value) == "table" and value.attach then
      chain[#chain + 1] = value
    elseif type(value) == "table" then
      opts = route_options.read(value, what, 3)
    else
      error(("%s: argument %d must be middleware or a table of options, not a %s"):format(what, i,
        type(value)), 3)
    end
  end
  return handler, opts, chain
end

--- Declares a route.
---@param method string
---@param pattern string "/orders/:id"
---@param ... function|table middleware and options of this route, then its handler
---@return moontide.Server self
function Server:route(method, pattern, ...)
  if type(method) ~= "string" or type(pattern) ~= "string" then
    error("server:route: a method and a path are wanted", 2)
  end
  local name = method:upper() .. " " .. pattern
  local handler, opts, chain = parse(name, ...)
  if self.composed then
    error(name .. ": routes are declared before the server listens", 2)
  end
  local where = self.opts.manage and "moontide" or caller_site()
  local route = { server = self, method = method:upper(), pattern = pattern, site = where }
  local watched = opts.cancel_on_disconnect
  if watched == nil then watched = self.opts.cancel_on_disconnect end
  if watched == nil then watched = opts.stream end
  local called = { handler }
  if #chain > 0 then called = middleware.compose(called, chain, route) end
  local id = dispatch.add(name, called, where, opts.stream, watched)
  if opts.timeout then dispatch.limit(id, opts.timeout, "timeout of the route") end
  local ok, message = http.route(self.listener, method, pattern, id, opts.stream or false,
    opts.body_limit or 0, watched == nil and 0 or watched and 1 or -1)
  if not ok then error(message, 2) end
  self.routes[#self.routes + 1] = id
  return self
end

for _, method in ipairs(METHODS) do
  Server[method] = function(self, pattern, ...)
    return self:route(method, pattern, ...)
  end
end

--- Adds middleware: `fn(req, next)` around each route of the server; the first added is outermost.
--- `next(req)` calls what comes behind it, `next()` too, in the request's own task.
---@param fn fun(req: moontide.Request, next: fun(req?: moontide.Request): ...): ...
---@return moontide.Server self
function Server:use(fn)
  if type(fn) ~= "function" then
    error(("server:use: middleware is a function, not a %s"):format(type(fn)), 2)
  end
  if self.composed then error("server:use: add middleware before the server listens", 2) end
  self.middleware[#self.middleware + 1] = fn
  return self
end

--- Puts the middleware around the routes; once.
function Server:compose()
  if self.composed then return end
  self.composed = true
  if #self.middleware == 0 then return end
  for _, id in ipairs(self.routes) do
    dispatch.wrap(id, function(handler) return middleware.compose(handler, self.middleware) end)
  end
end

--- Something that opens with the listener: `part:open()` is called before it is bound, and raises
--- when it cannot be.
---@param part { open: fun(self: table) }
function Server:own(part)
  self.parts = self.parts or {}
  self.parts[#self.parts + 1] = part
end

--- Where it listens, once bound.
---@return string address "127.0.0.1:8080", or the path
---@return integer port 0 for a Unix socket
function Server:address()
  return http.address(self.listener)
end

---@return integer
function Server:port()
  return select(2, http.address(self.listener))
end

--- Requests it works on now.
---@return integer
function Server:in_flight()
  return select(2, http.counts(self.listener))
end

---@param opts table what core.http.add takes
---@return moontide.Server
function M.new(opts)
  return setmetatable({
    name = opts.name, listener = http.add(opts), middleware = {}, routes = {}, opts = opts,
  }, Server)
end

return M
