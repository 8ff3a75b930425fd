--- The control socket of a host that is not there: says what a test wants a client to hear, or
--- nothing at all.
---
---     local host = fake_host.start("orders")
---     host.on.eval = function(conn, message)
---       conn:send { id = message.id, type = "done", status = "ok", ms = 0 }
---     end
---     proc.start { argv = { "eval", "orders", "1" }, env = host.env }
---     host:wait_for "eval"                         -- the request
---
--- `hello` is answered already. It lives in the test's own process, and goes with the test.
local cjson = require "cjson"
local loop = require "support.loop"
local proc = require "support.process"
local uv = require "luv"

local M = {}

-- A client that has gone is an error of a write, not the end of the test.
local sigpipe = uv.new_signal()
sigpipe:start("sigpipe")
sigpipe:unref()

---@class test.FakeHost
---@field dir string
---@field path string of its socket
---@field env table<string, string> what a client needs to find it
---@field on table<string, fun(conn: test.FakeConn, message: table)>
---@field heard table[] all requests so far
---@field conns test.FakeConn[]
local Host = {}
Host.__index = Host

---@class test.FakeConn
---@field pipe table
local Conn = {}
Conn.__index = Conn

---@param message table
function Conn:send(message)
  self.pipe:write(cjson.encode(message) .. "\n")
end

--- Ends a request.
function Conn:done(id, status)
  self:send { id = id, type = "done", status = status or "ok", ms = 0 }
end

function Conn:close()
  if not self.pipe:is_closing() then self.pipe:close() end
end

local function hear(self, conn, line)
  local message = cjson.decode(line)
  message.id = math.tointeger(message.id)
  self.heard[#self.heard + 1] = message
  local fn = self.on[message.type]
  if fn then fn(conn, message) end
end

local function take(self, conn, data)
  conn.text = conn.text .. data
  while true do
    local line, rest = conn.text:match "^([^\n]*)\n(.*)$"
    if not line then return end
    conn.text = rest
    hear(self, conn, line)
  end
end

--- Reads requests; it does from the beginning, until `conn.pipe:read_stop()`.
function Conn:listen()
  self.pipe:read_start(function(_, data)
    if not data then return self:close() end
    take(self.host, self, data)
  end)
end

local function accept(self)
  local conn = setmetatable({ pipe = uv.new_pipe(false), text = "", host = self }, Conn)
  self.server:accept(conn.pipe)
  self.conns[#self.conns + 1] = conn
  conn:listen()
end

--- Listens as a host of this name.
---@param name string
---@param options { dir: string|nil, pid: integer|nil, file: string|nil, state: string|nil }|nil
---@return test.FakeHost
function M.start(name, options)
  options = options or {}
  local dir = options.dir or proc.temp_dir()
  local pid = options.pid or math.tointeger(uv.os_getpid())
  uv.fs_mkdir(dir .. "/moontide", 448)
  local self = setmetatable({ dir = dir, heard = {}, conns = {}, pid = pid }, Host)
  self.path = ("%s/moontide/%s"):format(dir, options.file or ("%s-%d.sock"):format(name, pid))
  self.env = { RUNTIME_DIRECTORY = dir }
  self.on = {
    hello = function(conn, message)
      conn:send { id = message.id, type = "hello", protocol = 1, version = "0.1.0", name = name,
        pid = pid, state = options.state or "ready", policy = "eval", session = 1 }
      conn:done(message.id)
    end,
  }
  self.server = uv.new_pipe(false)
  assert(self.server:bind(self.path))
  assert(self.server:listen(16, function() accept(self) end))
  require("busted").subscribe({ "test", "end" }, function()
    self:stop()
    return nil, true
  end)
  return self
end

--- Waits until it has been asked so, `count` times; returns the last of those.
---@param type_of string
---@param count integer|nil
---@return table message
function Host:wait_for(type_of, count)
  return loop.wait(function()
    local n = 0
    for _, message in ipairs(self.heard) do
      if message.type == type_of then n = n + 1 end
      if n == (count or 1) then return message end
    end
  end, 15, "a request " .. type_of)
end

--- Closes all that it has open: it has died.
function Host:stop()
  if not self.server:is_closing() then self.server:close() end
  for _, conn in ipairs(self.conns) do conn:close() end
  uv.run "nowait"
end

return M
