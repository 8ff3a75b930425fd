--- Another protocol on the connection: `res:upgrade("websocket", function(stream) ... end)`.

local core = require "moontide.core"
local events = require "moontide.http.events"
local response = require "moontide.http.response"

local http = core.http

---@class moontide.UpgradedStream
---@field draining moontide.Event set when the process begins to drain: end in good order
---@field x moontide.Response
local UpgradedStream = {}
UpgradedStream.__index = UpgradedStream

local M = {}

--- Reads what the client has sent; what came behind the request's head is the first of it.
---@async
---@param n integer|nil so many bytes; nil: what is here, at least one
---@return string|nil data
---@return string|nil why "eof": the client sends no more; "aborted": it is gone
---@return string|nil rest what came before the "eof", less than n bytes
function UpgradedStream:read(n)
  if n ~= nil and (math.type(n) ~= "integer" or n < 1) then
    error("stream:read: a whole number of bytes from 1 on is wanted, or nothing", 2)
  end
  while true do
    local data, why, rest = http.read(self.x, n)
    if data then return data end
    if why == "eof" then return nil, why, rest end
    if why == "wait" then why = events.wait(self.x, "bytes of the client") end
    if why then return response.lost(self.x, why) end
  end
end

--- Writes bytes; awaits while the client is slow.
---@async
---@param data string
---@return boolean|nil ok
---@return string|nil why "aborted"
function UpgradedStream:write(data)
  if type(data) ~= "string" then
    error(("stream:write: a string is wanted, not a %s"):format(type(data)), 2)
  end
  return response.write_all(self.x, data)
end

--- Ends our half once all is written; the client's can still be read.
function UpgradedStream:shutdown()
  http.shutdown(self.x)
end

--- Ends both halves, once all is written.
function UpgradedStream:close()
  http.finish(self.x)
end

---@return boolean
function UpgradedStream:closed()
  return http.is_over(self.x)
end

-- Whether the client named the protocol among those that it offers.
local function offered(x, protocol)
  local wanted = x.upgrade_to
  if not wanted then return false end
  for name in wanted:gmatch "[^,%s]+" do
    if name:lower() == protocol:lower() then return true end
  end
  return false
end

--- What res:upgrade does; called by it as the last thing, so that the next level is the script.
---@async
---@param x moontide.Response
---@param protocol string
---@param fn fun(stream: moontide.UpgradedStream)
function M.run(x, protocol, fn)
  if type(protocol) ~= "string" or not protocol:find "^[%w/.+-]+$" then
    error("res:upgrade: a protocol is wanted, such as \"websocket\"", 2)
  elseif type(fn) ~= "function" then
    error(("res:upgrade: a function is wanted, not a %s"):format(type(fn)), 2)
  end
  if http.is_over(x) then return response.lost(x, "aborted") end
  if not offered(x, protocol) then
    response.raise(426, "the client must ask to upgrade to " .. protocol, { Upgrade = protocol })
  end
  local _, headers = response.take_prepared(x)
  headers.Upgrade = protocol
  local ok, message = http.upgrade(x, headers)
  if not ok then
    if message == "draining" then response.raise(503, message, { ["Retry-After"] = "1" }) end
    if message == "aborted" then return response.lost(x, message) end
    error("res:upgrade: " .. message, 2)
  end
  x.is_stream = true
  fn(setmetatable({ x = x, draining = events.draining }, UpgradedStream))
  return http.finish(x)
end

return M
