--- Server-sent events: `local s = res:sse { retry = "2s" }`, then `s:send("tick", { n = 1 })`.

local core = require "moontide.core"
local alarm = require "moontide.task.alarm"
local duration = require "moontide.duration"
local events = require "moontide.http.events"
local json = require "moontide.json"
local response = require "moontide.http.response"
local suggest = require "moontide.lazy" "moontide.suggest"

local http = core.http

---@class moontide.EventStreamOptions
---@field retry number|string|nil how long the client shall wait before it connects again
---@field keepalive number|string|false|nil a comment after so long without an event; default 15s

---@class moontide.EventStream
---@field draining moontide.Event set when the process begins to drain: say goodbye and return
---@field x moontide.Response
---@field keepalive number|nil
---@field timer integer|nil
---@field sent boolean|nil something was sent since the timer was set
local EventStream = {}
EventStream.__index = EventStream

local M = {}

local DEFAULT_KEEPALIVE = 15
local OPTIONS = { "keepalive", "retry" }

local function seconds(value, what)
  local n, message = duration.parse(value, "res:sse: " .. what)
  if not n then error(message, 4) end
  return n
end

-- Strict, as all options are.
local function read_options(opts)
  if type(opts) ~= "table" then error("res:sse: the options are a table", 3) end
  for key in pairs(opts) do
    if key ~= "retry" and key ~= "keepalive" then
      error(suggest.unknown("option of res:sse", tostring(key), OPTIONS), 3)
    end
  end
  local keepalive = opts.keepalive
  if keepalive == nil then keepalive = DEFAULT_KEEPALIVE end
  return keepalive and seconds(keepalive, "keepalive") or nil,
    opts.retry and seconds(opts.retry, "retry") or nil
end

-- A word of one line: an event's name or id. A line break in it would begin another field.
local function one_line(value, what)
  if type(value) ~= "string" and type(value) ~= "number" then
    error(("s:send: the %s is a text, not a %s"):format(what, type(value)), 3)
  end
  value = tostring(value)
  if value:find "[\r\n%z]" then
    error(("s:send: the %s has a line break or NUL in it"):format(what), 3)
  end
  return value
end

-- Each line gets its own field; all three line ends of the format are one.
local function lines(field, text)
  text = text:gsub("\r\n", "\n"):gsub("\r", "\n")
  return field .. text:gsub("\n", "\n" .. field) .. "\n"
end

local function data_text(data)
  local kind = type(data)
  if kind == "string" then return data end
  if kind == "table" then return json.encode(data) end
  if kind == "nil" then return "" end
  if kind == "number" or kind == "boolean" then return tostring(data) end
  error(("s:send: the data are a text or a table, not a %s"):format(kind), 3)
end

--- Sends an event; awaits while the client is slow.
---@async
---@param event string|nil its name; nil: "message"
---@param data string|table|number|boolean|nil several lines are several fields; a table is JSON
---@param id string|number|nil what the client sends as Last-Event-ID when it connects again
---@return boolean|nil ok
---@return string|nil why "aborted": the client is gone; a further send ends the handler
function EventStream:send(event, data, id)
  local text = lines("data: ", data_text(data)) .. "\n"
  if id ~= nil then text = "id: " .. one_line(id, "id") .. "\n" .. text end
  if event ~= nil then text = "event: " .. one_line(event, "event name") .. "\n" .. text end
  self.sent = true
  return response.write_all(self.x, text)
end

--- Sends a comment, which clients skip.
---@async
---@param text string
---@return boolean|nil ok
---@return string|nil why
function EventStream:comment(text)
  self.sent = true
  return response.write_all(self.x, lines(": ", data_text(text)) .. "\n")
end

--- Whether it has ended: closed, cut by a drain, or its client is gone.
---@return boolean
function EventStream:closed()
  return http.is_over(self.x)
end

--- Ends the stream; so does the end of the handler.
function EventStream:close()
  if self.timer then alarm.cancel_timer(self.timer) end
  self.timer = nil
  response.finish(self.x)
end

-- Comments keep proxies from closing a connection that seems idle, and show that a client is gone.
-- Where bytes are queued, none is needed. Not a task: it would keep the handler from ending.
local function watch(self)
  self.sent = false
  self.timer = alarm.timer(core.clock.now() + self.keepalive, function()
    self.timer = nil
    if http.is_over(self.x) then return end
    if not self.sent then http.nudge(self.x, ": \n\n") end
    watch(self)
  end)
end

--- What res:sse does; called by it as the last thing, so that the next level is the script.
---@async
---@param x moontide.Response
---@param opts moontide.EventStreamOptions|nil
---@return moontide.EventStream
function M.open(x, opts)
  local keepalive, retry = read_options(opts or {})
  local status, headers = response.take_prepared(x)
  headers["Cache-Control"] = headers["Cache-Control"] or "no-cache"
  local ok, message = http.begin_events(x, status or 200, headers, "text/event-stream")
  if not ok then
    if message == "draining" then
      response.raise(503, "draining", { ["Retry-After"] = "1" })
    elseif message ~= "aborted" then
      error("res:sse: " .. message, 2)
    end
  end
  if http.is_over(x) then response.leave "aborted" end -- HEAD, or the client is gone
  x.is_stream = true
  local self = setmetatable({ x = x, draining = events.draining, keepalive = keepalive },
    EventStream)
  if retry then
    response.write_all(x, ("retry: %d\n\n"):format(math.floor(retry * 1000 + 0.5)))
  end
  if keepalive and keepalive > 0 then watch(self) end
  return self
end

return M
