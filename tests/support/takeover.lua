--- Processes that follow each other: same ports, same directory of control sockets.
---
---     local service = takeover.service { script = load.APP }
---     local old = service:start {}                       -- a plain start
---     local new = service:start { flags = { "--takeover" } }
---     new:wait_log { msg = "taken over" }
---     assert.equal(0, (old:wait()))
local cjson = require "cjson"
local loop = require "support.loop"
local proc = require "support.process"
local uv = require "luv"

local M = {}

---@class test.Service
---@field dir string where its control sockets and its script are
---@field port integer
---@field manage_port integer
---@field script string
local Service = {}
Service.__index = Service

---@param options { script: string }
---@return test.Service
function M.service(options)
  return setmetatable({
    dir = proc.temp_dir(), port = proc.free_port(), manage_port = proc.free_port(),
    script = options.script,
  }, Service)
end

--- Starts a process of the service; does not wait for it.
---@param options test.StartOptions
---@return test.Process
function Service:start(options)
  local env = {
    PORT = self.port, MOONTIDE_MANAGE__PORT = self.manage_port, MOONTIDE_LOG__LEVEL = "debug",
  }
  for name, value in pairs(options.env or {}) do env[name] = value end
  options.env, options.dir, options.script = env, self.dir, options.script or self.script
  local app = proc.start(options)
  app.port, app.manage_port = self.port, self.manage_port
  return app
end

--- As start; returns when it serves.
function Service:start_ready(options)
  local app = self:start(options or {})
  app:wait_log { component = "lifecycle", msg = "ready" }
  app:wait_log { msg = "control socket" }
  return app
end

--- The next process, when it has taken over.
---@param options test.StartOptions|nil
function Service:follow(options)
  options = options or {}
  options.flags = options.flags or { "--takeover=required" }
  local app = self:start(options)
  app:wait_log { msg = "taken over" }
  return app
end

--- The directory of the control sockets.
function Service:sockets()
  return self.dir .. "/moontide"
end

---@param app test.Process
---@return string path of its control socket
function Service:socket(app)
  return ("%s/app-%d.sock"):format(self:sockets(), app.pid)
end

--- Asks a process for its sockets as a successor does, with what is given instead of the truth.
---@param app test.Process
---@param fields table|nil
---@return table peer of `connect`
---@return table reply
function Service:ask(app, fields)
  local peer = M.connect(self:socket(app))
  local message = {
    id = 1, type = "takeover", protocol = 1, name = "app", named = false,
    script = uv.fs_realpath(self.dir .. "/app.lua"), startup = 60,
  }
  for key, value in pairs(fields or {}) do message[key] = value end
  peer:send(message)
  return peer, peer:receive()
end

--- Speaks to a control socket, as any program could.
---@param path string
---@return table { send =, line =, receive =, close = }
function M.connect(path)
  local self = { pipe = uv.new_pipe(true), text = "" }
  local connected
  self.pipe:connect(path, function(err) connected = err or "yes" end)
  loop.wait(function() return connected end, 10, "the control socket")
  assert(connected == "yes", connected)
  self.pipe:read_start(function(err, data)
    if data then self.text = self.text .. data else self.closed = err or "eof" end
  end)
  -- A message, or bytes as they are.
  function self.send(_, what)
    self.pipe:write(type(what) == "string" and what or cjson.encode(what) .. "\n")
  end
  -- The next line, or nil when there will be none.
  function self.line(_)
    loop.wait(function() return self.text:find "\n" or self.closed end, 10, "a line")
    local line, rest = self.text:match "^([^\n]*)\n(.*)$"
    self.text = rest or self.text
    return line
  end
  function self.receive(_)
    return cjson.decode((assert(self:line(), "the control connection was closed")))
  end
  function self.close(_)
    if not self.pipe:is_closing() then self.pipe:close() end
    uv.run "nowait"
  end
  return self
end

return M
