--- What a handler sees: the request, and the answer. Both are one object, `req` and `res`.
---
--- Its plain fields (method, path, params, ...) come from C when they are asked for; the methods
--- here await, or need Lua. Those of the answer are in `response`.

local core = require "moontide.core"
local events = require "moontide.http.events"
local json = require "moontide.json"
local response = require "moontide.http.response"
local task = require "moontide.task"

local http = core.http
local take = http.take

local M = {
  answer = response.answer, is_error = response.is_error, is_gone = response.is_gone,
  raise = response.raise,
}

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
---@field upgrade_to string|nil "websocket": what res:upgrade may be asked for

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
members.upgrade_to = { function(x)
  return http.may_upgrade(x) and http.header(x, "upgrade") or nil
end }

-- One piece of the body, or all of it; awaits what is not here yet.
local function receive(x, whole)
  while true do
    local data, last = take(x, whole)
    if data or last ~= "wait" then return data, last end
    local why = events.wait(x, "request body")
    if why then return nil, why end
  end
end

--- The whole body; "" when there is none.
---@async
---@return string|nil body
---@return string|nil why "aborted", "protocol error", "timeout", "too large"
function members:body()
  local data, why = receive(self, true)
  if not data then return nil, why end
  return data
end

--- Iterates over the body as it comes: `for piece in req:chunks() do`. The client is held up while
--- nobody asks for the next piece. A body that breaks off ends the handler, quietly: what came of
--- it must not pass for the whole.
---@async
---@return fun(): string|nil
function members:chunks()
  local done = false
  return function()
    if done then return nil end
    local data, last = receive(self, false)
    if not data then response.leave(last) end
    done = last == true
    return data ~= "" and data or nil
  end
end

--- The body as JSON. What is no JSON answers 400 by itself.
---@async
---@return any
function members:json()
  local text, why = self:body()
  if not text then response.leave(why) end
  local value, message = json.decode(text)
  if value == nil and message then M.raise(400, "the body is not valid JSON") end
  return value
end

--- When the handler must have ended, on `tide.now()`; nil when nothing says so.
---@return number|nil
function members:deadline()
  return task.deadline()
end

return M
