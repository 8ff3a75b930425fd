--- A blocking HTTP/1.1 client for tests, on raw sockets: it shows what came over
--- the wire, also when that is wrong, and sends any bytes. All waits are bounded.
---
---     local http = require "support.http_client"
---
---     local response, err = http.get(port, "/orders/7")    -- one connection, closed after
---     assert.equal(200, response.status)
---     assert.equal("close", response.headers.connection)
---
---     local conn = assert(http.connect(port))               -- kept alive
---     conn:send_request("GET", "/slow")                     -- goes out, does not wait
---     app:signal("TERM")
---     local slow = conn:read_response()                     -- waits for its answer
---     assert.equal("eof", conn:wait_close())                -- then the server closes
---
---     conn:send("GET / HTTP/1.1\r\n")                       -- bytes as they are
---
--- Errors of the network are returned (nil, "ECONNREFUSED"), not raised.
local uv = require "luv"
local loop = require "support.loop"

local M = {}

--- Bound of every wait that names no other (seconds).
M.default_timeout = 10

---@class test.HttpResponse
---@field status integer
---@field reason string
---@field version string "1.1"
---@field headers table<string, string> by lower-case name; repeated ones joined by ", "
---@field body string
---@field head string status line and headers as they came
---@field took number seconds since the request was sent

---@class test.HttpConnection
---@field closed? string "eof", or libuv's name of the error that ended it
local Connection = {}
Connection.__index = Connection

-- How the server ended the connection. libuv makes an EOF of a reset that comes together with data;
-- but only a connection closed in good order still has a peer. (One that we have half closed
-- ourselves has none either way.)
local function how_closed(self, err)
  if err then return err:match("^%u+") end
  local reset = self.is_tcp and not self.half_closed and not self.socket:getpeername()
  return reset and "ECONNRESET" or "eof"
end

--- Connects to a TCP port of 127.0.0.1, or to a Unix socket when given a path.
---@param where integer|string
---@param options? { host?: string, timeout?: number }
---@return test.HttpConnection? connection
---@return string? err
function M.connect(where, options)
  options = options or {}
  local self = setmetatable({ buffer = "", sent_at = loop.now() }, Connection)
  local result
  local function connected(err) result = err or "connected" end
  if type(where) == "string" then
    self.socket = uv.new_pipe(false)
    self.socket:connect(where, connected)
  else
    self.socket, self.is_tcp = uv.new_tcp(), true
    self.socket:connect(options.host or "127.0.0.1", where, connected)
  end
  loop.try(function() return result end, options.timeout or M.default_timeout)
  if result ~= "connected" then
    self:close()
    return nil, result and result:match("^%u+") or "ETIMEDOUT"
  end
  self.socket:read_start(function(err, data)
    if data then
      self.buffer = self.buffer .. data
    else
      self.closed = how_closed(self, err)
    end
  end)
  return self
end

--- Sends bytes as they are; returns when the kernel has taken them.
---@param bytes string
---@return boolean? ok
---@return string? err
function Connection:send(bytes)
  local result
  self.sent_at = loop.now()
  local request, err = self.socket:write(bytes, function(failed) result = failed or "sent" end)
  if not request then return nil, err:match("^%u+") end
  loop.try(function() return result or self.closed end, M.default_timeout)
  if result == "sent" then return true end
  return nil, result and result:match("^%u+") or self.closed or "ETIMEDOUT"
end

local function encode(method, path, options)
  options = options or {}
  local lines = { ("%s %s HTTP/1.1"):format(method, path) }
  local headers = { Host = "localhost" }
  if options.body then headers["Content-Length"] = #options.body end
  for name, value in pairs(options.headers or {}) do headers[name] = value end
  for name, value in pairs(headers) do
    if value ~= false then lines[#lines + 1] = ("%s: %s"):format(name, value) end
  end
  return table.concat(lines, "\r\n") .. "\r\n\r\n" .. (options.body or "")
end

--- Sends a request and does not wait for the answer.
---@param method string
---@param path string
---@param options? { headers?: table<string, string|number|false>, body?: string }
---@return boolean? ok
---@return string? err
function Connection:send_request(method, path, options)
  self.method = method
  return self:send(encode(method, path, options))
end

local function parse_head(head)
  local version, status, reason = head:match("^HTTP/(%d%.%d) (%d%d%d) ?([^\r\n]*)")
  if not version then return nil end
  local headers = {}
  for name, value in head:gmatch("\r\n([^:\r\n]+):[ \t]*([^\r\n]*)") do
    name = name:lower()
    headers[name] = headers[name] and headers[name] .. ", " .. value or value
  end
  return { version = version, status = math.tointeger(tonumber(status)), reason = reason,
    headers = headers, head = head }
end

-- Takes a chunked body that begins at `at`: body, position after it; nil while
-- it is not whole.
local function take_chunked(buffer, at)
  local parts = {}
  while true do
    local size, start = buffer:match("^(%x+)[^\r\n]*\r\n()", at)
    if not size then return nil end
    size = tonumber(size, 16)
    if size == 0 then
      local trailers_end = buffer:match("^\r\n()", start) or buffer:match("^.-\r\n\r\n()", start)
      if not trailers_end then return nil end
      return table.concat(parts), trailers_end
    end
    if #buffer < start + size + 1 then return nil end
    parts[#parts + 1] = buffer:sub(start, start + size - 1)
    at = start + size + 2
  end
end

-- Takes one whole response off the buffer; nil while there is none.
local function take_response(self)
  local head, at = self.buffer:match("^(.-\r\n)\r\n()")
  if not head then return nil end
  local response = parse_head(head)
  if not response then return nil end
  local length = math.tointeger(tonumber(response.headers["content-length"]))
  local bodiless = self.method == "HEAD" or response.status < 200 or response.status == 204
    or response.status == 304
  local stop
  if bodiless then
    response.body, stop = "", at
  elseif response.headers["transfer-encoding"] == "chunked" then
    response.body, stop = take_chunked(self.buffer, at)
  elseif length then
    if #self.buffer >= at + length - 1 then
      response.body, stop = self.buffer:sub(at, at + length - 1), at + length
    end
  elseif self.closed == "eof" then
    response.body, stop = self.buffer:sub(at), #self.buffer + 1
  end
  if not stop then return nil end
  self.buffer = self.buffer:sub(stop)
  response.took = loop.now() - self.sent_at
  return response
end

--- Waits for the next whole response on the connection.
---@param timeout? number seconds
---@return test.HttpResponse? response
---@return string? err "eof", "ECONNRESET", ... or a message about the time
---@return string? partial what had come of it
function Connection:read_response(timeout)
  local response
  local _, message = loop.try(function()
    response = take_response(self)
    return response or self.closed
  end, timeout or M.default_timeout, "a response")
  if response then return response end
  return nil, self.closed or message, self.buffer
end

--- Sends a request and waits for its answer.
---@param method string
---@param path string
---@param options? { headers?: table, body?: string, timeout?: number }
---@return test.HttpResponse? response
---@return string? err
function Connection:request(method, path, options)
  local sent, err = self:send_request(method, path, options)
  if not sent then return nil, err end
  return self:read_response(options and options.timeout)
end

--- Waits until the server ends the connection: "eof", "ECONNRESET"; nil when it
--- does not. What came meanwhile stays in `buffer`.
---@param timeout? number seconds
---@return string? how
---@return string? message
function Connection:wait_close(timeout)
  return loop.try(function() return self.closed end, timeout or M.default_timeout,
    "the server to close the connection")
end

--- Ends our half: the server sees EOF, its answer can still come.
function Connection:half_close()
  local done
  self.half_closed = true
  self.socket:shutdown(function() done = true end)
  loop.try(function() return done end, M.default_timeout)
end

--- Stops reading, so that the server's writes pile up.
function Connection:stop_reading()
  self.socket:read_stop()
end

--- Closes it with RST instead of FIN (TCP only).
function Connection:reset()
  self.socket:close_reset()
  uv.run("nowait")
end

--- Closes it; harmless when it is closed.
function Connection:close()
  if self.socket and not self.socket:is_closing() then self.socket:close() end
  uv.run("nowait")
end

--- One request on a connection of its own.
---@param method string
---@param where integer|string port or path of a Unix socket
---@param path string
---@param options? { headers?: table, body?: string, timeout?: number, host?: string }
---@return test.HttpResponse? response
---@return string? err
function M.request(method, where, path, options)
  local conn, err = M.connect(where, options)
  if not conn then return nil, err end
  local response
  response, err = conn:request(method, path, options)
  conn:close()
  return response, err
end

---@param where integer|string port or path of a Unix socket
---@param path string
---@param options? table see request
---@return test.HttpResponse? response
---@return string? err
function M.get(where, path, options)
  return M.request("GET", where, path, options)
end

---@param where integer|string port or path of a Unix socket
---@param path string
---@param body string
---@param options? table see request
---@return test.HttpResponse? response
---@return string? err
function M.post(where, path, body, options)
  options = options or {}
  options.body = body
  return M.request("POST", where, path, options)
end

--- Sends the same request on so many connections before it reads an answer.
---@param count integer
---@param method string
---@param where integer|string as of `connect`
---@param path string
---@param options? table as of `request`
---@return test.HttpResponse[]
function M.ask_at_once(count, method, where, path, options)
  local conns, responses = {}, {}
  for i = 1, count do conns[i] = assert(M.connect(where)) end
  for _, conn in ipairs(conns) do conn:send_request(method, path, options) end
  for i, conn in ipairs(conns) do
    responses[i] = assert(conn:read_response())
    conn:close()
  end
  return responses
end

return M
