--- What a handler sees: the request, and the answer. Both are one object, `req` and `res`.
---
--- Its plain fields (method, path, params, ...) come from C when they are asked for; the methods
--- here await, or need Lua.

local core = require "moontide.core"
local events = require "moontide.http.events"
local json = require "moontide.json"
local task = require "moontide.task"

local http = core.http
local take, begin, write, finish = http.take, http.begin, http.write, http.finish

local M = {}

---@class moontide.Request : moontide.Response
---@field method string "GET"
---@field path string as it came, with its escapes
---@field params table<string, string> of the route, escapes undone
---@field query table<string, string> the last of each name; `query_text` has all
---@field query_text string behind the question mark
---@field headers table<string, string> names in any case; repeated fields joined by ", "
---@field target string the whole request target
---@field remote string "127.0.0.1:4711"
---@field version "1.0"|"1.1"
---@field draining moontide.Event set when the process begins to drain

---@class moontide.Response

local members = http.members

-- ---- the request ------------------------------------------------------------------------------

local Headers = {
  __index = function(self, name)
    return type(name) == "string" and http.header(self[1], name) or nil
  end,
  __pairs = function(self)
    local request, i = self[1], 0
    return function()
      i = i + 1
      return http.header_at(request, i)
    end
  end,
}

local function decode(text)
  return (text:gsub("+", " "):gsub("%%(%x%x)", function(hex)
    return string.char(tonumber(hex, 16))
  end))
end

local function parse_query(text)
  local query = {}
  for pair in text:gmatch("[^&]+") do
    local name, value = pair:match("^([^=]*)=?(.*)$")
    query[decode(name)] = decode(value)
  end
  return query
end

-- Fields that are made once for each request: { maker }.
members.headers = { function(x) return setmetatable({ x }, Headers) end }
members.query = { function(x) return parse_query(x.query_text) end }
members.draining = { function() return events.draining end }

-- One piece of the body, or all of it; awaits what is not here yet.
local function receive(x, whole)
  while true do
    local data, last = take(x, whole)
    if data or last ~= "wait" then return data, last end
    events.wait(x, "request body")
  end
end

--- The whole body; "" when there is none.
---@async
---@return string|nil body
---@return string|nil why "aborted", "protocol error", "timeout"
function members:body()
  local data, why = receive(self, true)
  if not data then return nil, why end
  return data
end

--- Iterates over the body as it comes: `for piece in req:chunks() do`. Raises when the client goes
--- away in the middle of it.
---@async
---@return fun(): string|nil
function members:chunks()
  local done = false
  return function()
    if done then return nil end
    local data, last = receive(self, false)
    if not data then error("request body: " .. last, 2) end
    done = last == true
    return data ~= "" and data or nil
  end
end

--- The body as JSON. What is no JSON answers 400 by itself.
---@async
---@return any
function members:json()
  local text, why = self:body()
  if not text then M.raise(400, "request body: " .. why) end
  local value, message = json.decode(text)
  if value == nil and message then M.raise(400, "the body is not valid JSON") end
  return value
end

--- When the handler must have ended, on `tide.now()`; nil when nothing says so.
---@return number|nil
function members:deadline()
  return task.deadline()
end

-- ---- the answer -------------------------------------------------------------------------------

-- Status and headers set before the body, by exchange; most handlers need none.
local prepared = setmetatable({}, { __mode = "k" })
M.prepared = prepared

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

--- Sets a header of the answer; a list of values makes several fields.
---@param name string
---@param value string|number|string[]
---@return moontide.Response self
function members:header(name, value)
  if type(name) ~= "string" then error("res:header: the name must be a string", 2) end
  prepare(self).headers[name] = value
  return self
end

local function send_head(x)
  local p = prepared[x]
  prepared[x] = nil
  local ok, message = begin(x, p and p.status or 200, p and p.headers,
    "text/plain; charset=utf-8")
  if not ok and message ~= "aborted" then error("res:write: " .. message, 3) end
  return ok, message
end

--- Writes a piece of the answer; the first one sends the head. Awaits while the client is slow.
---@async
---@param data string
---@return boolean|nil ok
---@return string|nil why "aborted": the client is gone
function members:write(data)
  if type(data) ~= "string" then
    error(("res:write: a string is wanted, not a %s"):format(type(data)), 2)
  end
  local sent = http.head_sent(self)
  if sent == nil then return nil, "aborted" end
  if not sent then
    local ok, why = send_head(self)
    if not ok then return nil, why end
  end
  local ok, why = write(self, data)
  if ok == false then
    events.wait(self, "room to write")
    if http.is_over(self) then return nil, "aborted" end
    ok = true
  end
  return ok, why
end

-- ---- errors that are answers ------------------------------------------------------------------

local HttpError = { __name = "moontide.HttpError" }
HttpError.__index = HttpError
HttpError.__tostring = function(e) return ("%d: %s"):format(e.status, e.message) end

--- Ends the handler with this answer: `tide.http.error(404, "no such order")`.
---@param status integer
---@param message string
function M.raise(status, message)
  error(setmetatable({ kind = "http", status = status, message = message }, HttpError), 0)
end

---@return boolean
function M.is_error(err)
  return getmetatable(err) == HttpError
end

-- ---- from what a handler returns to an answer -------------------------------------------------

local TEXT, JSON = "text/plain; charset=utf-8", "application/json"
local reply = http.reply

local function merge(p, status, headers)
  local all = p.headers
  for name, value in pairs(headers or {}) do all[name] = value end
  return p.status or status, all
end

local function send(x, status, body, headers, kind)
  if prepared[x] then
    status, headers = merge(prepared[x], status, headers)
    prepared[x] = nil
  end
  local ok, message = reply(x, status, body, headers, kind)
  if not ok and message ~= "aborted" then error(message, 0) end
end

-- After a stream: what the handler returns is the last piece, if it is text.
local function end_stream(x, last)
  if type(last) == "string" then x:write(last) end
  finish(x)
end

--- Answers with what the handler returned: body | status, body, headers | nothing.
function M.answer(x, a, b, c)
  local kind = type(a)
  if http.head_sent(x) then return end_stream(x, a) end
  local status, body, headers = 200, a, b
  if kind == "number" then status, body, headers, kind = a, b, c, type(b) end
  if kind == "nil" then
    return send(x, status == 200 and 204 or status, nil, headers)
  elseif kind == "string" then
    return send(x, status, body, headers, TEXT)
  elseif kind == "table" then
    return send(x, status, json.encode(body), headers, JSON)
  end
  error(("a handler returns a string, a table or nothing, perhaps after a status; not a %s"):format(
    kind), 0)
end

return M
