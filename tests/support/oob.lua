--- A client of the out-of-band line, where the watchdog answers while the loop does not.
---
---     local app = proc.start { script = APP }
---     local line = oob.connect(app)                -- waits for its file
---     local where = line:where(function(w) return w.lua ~= cjson.null end)
---     assert.equal("interrupted", line:ask("interrupt").text)
---     line:close()
local cjson = require "cjson"
local console = require "support.console"
local loop = require "support.loop"
local uv = require "luv"

local M = {}

local TIMEOUT = 15

---@class test.Line
---@field client test.ConsoleClient
local Line = {}
Line.__index = Line

--- The path of the file.
---@param app test.Process
---@param name string|nil of the host: "app"
---@return string
function M.path(app, name)
  return ("%s/moontide/%s-%d.oob"):format(app.dir, name or "app", app.pid)
end

--- Waits until the file is there, and connects.
---@param app test.Process
---@param name string|nil
---@return test.Line
function M.connect(app, name)
  local path = M.path(app, name)
  loop.wait(function() return uv.fs_stat(path) end, TIMEOUT, path)
  return setmetatable({ client = console.connect(path) }, Line)
end

--- Asks, and waits for all of the answer.
---@param type string
function Line:ask(type)
  return self.client:request { type = type }
end

--- Asks where it is until `matches` likes the answer.
---@param matches fun(where: table): any
---@return table where
---@return string text as a person reads it
function Line:where(matches)
  local reply
  local ok = loop.try(function()
    reply = self:ask "where"
    return matches(reply.value.where)
  end, TIMEOUT)
  if not ok then error("in vain; last: " .. cjson.encode(reply.value), 2) end
  return reply.value.where, reply.text
end

--- The same until Lua runs something of this name.
---@param what string a pattern
---@return table where
---@return string text
function Line:runs(what)
  return self:where(function(where)
    return type(where.lua) == "table" and where.lua.what:find(what)
  end)
end

function Line:close()
  self.client:close()
end

return M
