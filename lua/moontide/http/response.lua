--- The answer of a handler: whole, in pieces, as events, or another protocol.

local core = require "moontide.core"
local events = require "moontide.http.events"
local json = require "moontide.json"
local lazy = require "moontide.lazy"

local sse = lazy "moontide.http.sse"
local upgrade = lazy "moontide.http.upgrade"
local http = core.http
local begin, write, finish, reply = http.begin, http.write, http.finish, http.reply
local head_sent = http.head_sent

local M = {}

---@class moontide.Response
local members = http.members

-- ---- errors that are answers ------------------------------------------------------------------

local HttpError = { __name = "moontide.HttpError" }
HttpError.__index = HttpError
HttpError.__tostring = function(e) return ("%d: %s"):format(e.status, e.message) end

--- Ends the handler with this answer: `tide.http.error(404, "no such order")`.
---@param status integer
---@param message string
---@param headers table<string, string>|nil
function M.raise(status, message, headers)
  error(setmetatable({ kind = "http", status = status, message = message, headers = headers },
    HttpError), 0)
end

---@return boolean
function M.is_error(err)
  return getmetatable(err) == HttpError
end

-- ---- when the client has left -----------------------------------------------------------------

local Gone = { __name = "moontide.Gone" }
Gone.__index = Gone
Gone.__tostring = function(e) return "the client is gone: " .. e.reason end

--- Ends the handler without an answer and without a word in the log.
---@param reason string
function M.leave(reason)
  error(setmetatable({ kind = "gone", reason = reason }, Gone), 0)
end

---@return boolean
function M.is_gone(err)
  return getmetatable(err) == Gone
end

--- What a write returns to a handler without a client. One that goes on and writes again has not
--- looked, and would perhaps never end: it is ended.
---@param x moontide.Response
---@param reason string
function M.lost(x, reason)
  if x.told_lost then M.leave(reason) end
  x.told_lost = true
  return nil, reason
end

-- ---- status and headers -----------------------------------------------------------------------

-- Status and headers set before the body, by exchange; most handlers need none.
local prepared = setmetatable({}, { __mode = "k" })

local function prepare(x)
  local p = prepared[x]
  if not p then
    p = { headers = {} }
    prepared[x] = p
    http.prepare(x)
  end
  return p
end

--- Sets the status of the answer.
---@param status integer
---@return moontide.Response self
function members:status(status)
  if math.type(status) ~= "integer" or status < 200 or status > 599 then
    error(("res:status: a whole number from 200 to 599 is wanted, not %s"):format(
      tostring(status)), 2)
  end
  prepare(self).status = status
  return self
end

--- Sets a header of the answer; a list of values makes several fields. Content-Length promises how
--- long a body in pieces will be.
---@param name string
---@param value string|number|string[]
---@return moontide.Response self
function members:header(name, value)
  if type(name) ~= "string" then error("res:header: the name must be a string", 2) end
  prepare(self).headers[name] = value
  return self
end

--- Takes what was set before; the head goes out now.
---@param x moontide.Response
---@return integer|nil status
---@return table<string, any> headers
function M.take_prepared(x)
  local p = prepared[x]
  prepared[x] = nil
  return p and p.status, p and p.headers or {}
end

-- ---- in pieces --------------------------------------------------------------------------------

local TEXT, JSON = "text/plain; charset=utf-8", "application/json"

-- Sends the head if none was sent. The message of a head that cannot be is for the script's line.
local function open(x, what, level)
  local sent = head_sent(x)
  if sent then return true end
  if sent == nil then return M.lost(x, "aborted") end
  local status, headers = M.take_prepared(x)
  local ok, message = begin(x, status or 200, headers, TEXT)
  if ok then return true end
  if message ~= "aborted" then error(what .. ": " .. message, level + 1) end
  return M.lost(x, message)
end

--- Writes a text behind a head that was sent; awaits while the client is slow. Without `from` it
--- is one piece, between which and others nothing can come; with 1 a long one goes out in several.
---@async
---@param x moontide.Response
---@param data string
---@param from 1|nil
---@return boolean|nil ok
---@return string|nil why
function M.write_all(x, data, from)
  repeat
    local ok, rest = write(x, data, from)
    if ok == nil then
      if rest ~= "aborted" then error("res:write: " .. rest, 0) end
      return M.lost(x, rest)
    elseif not ok then
      local why = events.wait(x, "room to write")
      if why or http.is_over(x) then return M.lost(x, "aborted") end
    end
    from = rest
  until not from
  return true
end

--- Writes a piece of the answer; the first one sends the head. Awaits while the client is slow.
---@async
---@param data string
---@return boolean|nil ok
---@return string|nil why "aborted": the client is gone; a further write ends the handler
function members:write(data)
  if type(data) ~= "string" then
    error(("res:write: a string is wanted, not a %s"):format(type(data)), 2)
  end
  local ok, why = open(self, "res:write", 2)
  if not ok then return nil, why end
  return M.write_all(self, data, 1)
end

--- Ends a body in pieces; raises when it is shorter than was promised.
function M.finish(x)
  local ok, message = finish(x)
  if not ok and message ~= "aborted" then error("res: " .. message, 0) end
  return ok, message
end

--- Sends the head, then what `fn` writes; the answer ends when it returns. When it fails, the
--- connection is reset, so that the client does not take what it got for the whole.
---@async
---@param fn fun(write: fun(data: string): boolean|nil, string|nil)
---@return boolean|nil ok
---@return string|nil why "aborted"
function members:stream(fn)
  if type(fn) ~= "function" then
    error(("res:stream: a function is wanted, not a %s"):format(type(fn)), 2)
  end
  local ok, why = open(self, "res:stream", 2)
  if not ok then return nil, why end
  fn(function(data) return self:write(data) end)
  return M.finish(self)
end

--- Begins a stream of events for the browser's EventSource. See moontide.EventStream.
---@async
---@param opts moontide.EventStreamOptions|nil
---@return moontide.EventStream
function members:sse(opts)
  return sse.open(self, opts)
end

--- Answers 101 and gives the connection to `fn`, which speaks the other protocol; it is closed
--- when that returns. A client that did not ask for the protocol is answered 426.
---@async
---@param protocol string "websocket"
---@param fn fun(stream: moontide.UpgradedStream)
---@return boolean|nil ok
---@return string|nil why "aborted"
function members:upgrade(protocol, fn)
  return upgrade.run(self, protocol, fn)
end

-- ---- from what a handler returns to an answer -------------------------------------------------

-- Longer bodies go out in pieces, as fast as the client takes them, and are copied nowhere.
local LONG = 262144

local function merge(x, status, headers)
  local set, all = M.take_prepared(x)
  for name, value in pairs(headers or {}) do all[name] = value end
  return set or status, all
end

local function send_long(x, status, body, headers, kind)
  local ok, message = begin(x, status, headers, kind, #body)
  if ok and not http.is_over(x) then
    ok, message = M.write_all(x, body, 1)
    if ok then ok, message = finish(x) end
  end
  return ok, message
end

local function send(x, status, body, headers, kind)
  if prepared[x] then status, headers = merge(x, status, headers) end
  local way = body and #body > LONG and send_long or reply
  local ok, message = way(x, status, body, headers, kind)
  if not ok and message ~= "aborted" then error(message, 0) end
end

-- After a stream: what the handler returns is the last piece, if it is text.
local function end_stream(x, last)
  local kind = type(last)
  if kind == "table" or kind == "number" then
    error("a handler that has written its answer returns its last piece or nothing, not a " .. kind,
      0)
  end
  if type(last) == "string" and last ~= "" and not M.write_all(x, last, 1) then return end
  M.finish(x)
end

--- Answers with what the handler returned: body | status, body, headers | nothing.
function M.answer(x, a, b, c)
  local kind, sent = type(a), head_sent(x)
  if sent then return end_stream(x, a) end
  if sent == nil then return end
  local status, body, headers = kind == "nil" and 204 or 200, a, b
  if kind == "number" then status, body, headers, kind = a, b, c, type(b) end
  if kind == "nil" then
    return send(x, status, nil, headers)
  elseif kind == "string" then
    return send(x, status, body, headers, TEXT)
  elseif kind == "table" then
    return send(x, status, json.encode(body), headers, JSON)
  end
  error(("a handler returns a string, a table or nothing, perhaps after a status; not a %s"):format(
    kind), 0)
end

return M
