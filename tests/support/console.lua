--- A client of the control socket that says exactly what a test tells it to.
---
---     local app = proc.start { script = APP }
---     local client = console.connect(app)          -- waits for the socket
---     client:hello()
---     local reply = client:eval "1 + 1"            -- { status =, text =, out =, error =, ... }
---     assert.equal("2", reply.text)
---     local id = client:send { type = "eval", source = "tide.sleep(10)" }
---     client:request { type = "interrupt", of = id }
---     assert.equal("cancelled", client:finish(id).status)
---     client:half_close()                          -- shutdown(SHUT_WR)
---     client:close()
---
--- Every wait is bounded (15 s, or the last argument), and raises with what has come.
local cjson = require "cjson"
local loop = require "support.loop"
local uv = require "luv"

local M = {}

local TIMEOUT = 15

-- A host that closes must not end the test that still writes.
local broken = uv.new_signal()
broken:start "sigpipe"
broken:unref()

---@class test.ConsoleClient
---@field messages table[] all that has come as JSON and was not taken
---@field text string bytes that are no whole line yet; of a plain console: all that has come
---@field closed string|nil "eof" or the error, when the other side has closed
local Client = {}
Client.__index = Client

-- ---- connecting ---------------------------------------------------------------

local function find(directory, pid)
  local scan = uv.fs_scandir(directory)
  for name in uv.fs_scandir_next, scan do
    -- Under a name with a dot it is not ready yet.
    if scan and name:find("^[^.].*%-" .. pid .. "%.sock$") then return directory .. "/" .. name end
  end
end

--- Waits for the control socket of a process.
---@param app test.Process
---@param timeout number|nil seconds
---@return string path
function M.socket(app, timeout)
  return loop.wait(function()
    local directory = app.dir .. "/moontide"
    return uv.fs_stat(directory) and find(directory, app.pid)
  end, timeout or TIMEOUT, "the control socket of process " .. app.pid)
end

-- A pipe to the path, or nil and why not.
local function dial(path)
  local pipe, connected = uv.new_pipe(false), nil
  pipe:connect(path, function(err) connected = err or "yes" end)
  loop.wait(function() return connected end, TIMEOUT, "a connection to " .. path)
  if connected == "yes" then return pipe end
  pipe:close()
  return nil, connected
end

--- Connects; does not say hello.
---@param where string|test.Process a path, or a process
---@return test.ConsoleClient
function M.connect(where)
  local path = type(where) == "string" and where or M.socket(where)
  local pipe, err
  loop.wait(function() -- a file that is there may not be listened on yet
    pipe, err = dial(path)
    return pipe or err ~= "ECONNREFUSED"
  end, TIMEOUT, "somebody at " .. path)
  assert(pipe, err)
  local self = setmetatable({ pipe = pipe, text = "", messages = {}, last_id = 0 }, Client)
  self:read()
  return self
end

--- How many other sessions the process has.
---@param where string|test.Process
---@return integer
function M.sessions(where)
  local watcher = M.connect(where)
  local n = watcher:request({ type = "status" }).value.status.sessions
  watcher:close()
  return n - 1
end

--- Takes what comes; `connect` does it already.
function Client:read()
  self.pipe:read_start(function(err, data)
    if data then self.text = self.text .. data else self.closed = err or "eof" end
  end)
end

--- Leaves what comes in the socket: a slow reader.
function Client:stop_reading()
  self.pipe:read_stop()
end

-- ---- sending --------------------------------------------------------------------

--- Sends bytes, or a message, which gets the next id if it has none.
---@param what string|table
---@return integer|string|nil id
function Client:send(what)
  if type(what) == "string" then
    self.pipe:write(what)
    return nil
  end
  if what.id == nil then
    self.last_id = self.last_id + 1
    what.id = self.last_id
  end
  self.pipe:write(cjson.encode(what) .. "\n")
  return what.id
end

--- Ends our direction only.
function Client:half_close()
  self.pipe:shutdown()
end

function Client:close()
  if not self.pipe:is_closing() then self.pipe:close() end
  uv.run "nowait"
end

-- ---- receiving ------------------------------------------------------------------

local function take_line(self)
  local line, rest = self.text:match "^([^\n]*)\n(.*)$"
  self.text = rest or self.text
  return line
end

--- The next line as it is, or nil when there will be none.
---@param timeout number|nil
---@return string|nil
function Client:line(timeout)
  loop.wait(function() return self.text:find "\n" or self.closed end, timeout or TIMEOUT,
    "a line; so far: " .. self.text)
  return take_line(self)
end

-- Takes in whole lines.
local function parse(self)
  for line in take_line, self do
    local message = cjson.decode(line)
    if math.type(message.id) == "float" then message.id = math.tointeger(message.id) end
    self.messages[#self.messages + 1] = message
  end
end

--- The first message that `matches`, taken out of those that have come; the first at all without.
--- Raises when the connection ends, or the time, before it has come.
---@param matches (fun(message: table): any)|nil
---@param timeout number|nil
---@param what string|nil for the message
---@return table
function Client:receive(matches, timeout, what)
  local found
  local ok = loop.try(function()
    parse(self)
    for i, message in ipairs(self.messages) do
      if not matches or matches(message) then
        found = table.remove(self.messages, i)
        return true
      end
    end
    return self.closed
  end, timeout or TIMEOUT)
  if found then return found end
  error(("%s for %s; what came: %s"):format(ok and "closed while waiting" or "waited in vain",
    what or "a message", cjson.encode(self.messages)), 2)
end

--- An event: `client:event("state")`.
---@param name string
---@param timeout number|nil
function Client:event(name, timeout)
  return self:receive(function(m) return m.type == "event" and m.event == name end, timeout,
    "event " .. name)
end

--- Waits for the end of a request.
---@param id integer|string
---@param timeout number|nil
---@return { status: string, ms: number, out: string, text: string|nil, value: table|nil,
--- error: table|nil, need_more: boolean|nil, all: table[] } reply
function Client:finish(id, timeout)
  local result = { out = "", all = {} }
  local message
  repeat
    message = self:receive(function(m) return m.id == id end, timeout,
      "the end of request " .. id)
    result.all[#result.all + 1] = message
    if message.type == "out" then
      result.out = result.out .. message.text
    elseif message.type == "value" then
      result.value, result.text = message, message.text
    elseif message.type ~= "done" then
      result[message.type] = message
    end
  until message.type == "done"
  result.status, result.ms = message.status, message.ms
  return result
end

--- Sends a request and waits for its end.
---@param message table
---@param timeout number|nil
function Client:request(message, timeout)
  return self:finish(self:send(message), timeout)
end

--- Says hello as a console does; returns that of the host.
---@return table
function Client:hello()
  return self:request({ type = "hello", want = "console" }).hello
end

--- Evaluates a source and waits for its end.
---@param source string
---@param fields table|nil more fields of the request
---@param timeout number|nil
function Client:eval(source, fields, timeout)
  local message = { type = "eval", source = source }
  for key, value in pairs(fields or {}) do message[key] = value end
  return self:request(message, timeout)
end

--- Waits until the other side has closed.
---@param timeout number|nil
function Client:wait_closed(timeout)
  loop.wait(function() return self.closed end, timeout or TIMEOUT,
    "the end of the connection; so far: " .. self.text)
end

--- Of a plain console: waits until its text matches, and takes all of it.
---@param pattern string
---@param timeout number|nil
---@return string text
function Client:expect(pattern, timeout)
  local found = loop.try(function() return self.text:find(pattern) end, timeout or TIMEOUT)
  if not found then
    error(("waited in vain for %q, what came: %q"):format(pattern, self.text), 2)
  end
  local text = self.text
  self.text = ""
  return text
end

return M
