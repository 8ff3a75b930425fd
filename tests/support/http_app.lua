--- An application with the routes that the HTTP tests share, as a real process.
---
---     local app = http_app.start { linger = "200ms" }        -- ready when it returns
---     http.get(app.port, "/slow?ms=300")
---
--- /hello, /slow?ms=, /echo, /stream?ms= (three pieces), /count (requests begun).
local proc = require "support.process"

local M = {}

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = {
  linger = os.getenv "LINGER", drain = os.getenv "DRAIN",
  timeout = "20s",
} }
local count = 0
local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT"), @LISTEN@ }
local function milliseconds(req) return (tonumber(req.query.ms) or 100) / 1000 end
server:use(function(req, next) count = count + 1 return next(req) end)
server:get("/hello", function() return "hello" end)
server:get("/count", function() return tostring(count) end)
server:get("/slow", function(req) tide.sleep(milliseconds(req)) return "slow" end)
server:post("/slow", function(req) tide.sleep(milliseconds(req)) return 201, req:body() end)
server:post("/echo", function(req) return req:body() end)
server:get("/stream", function(req, res)
  for i = 1, 3 do
    res:write("piece " .. i .. "\n")
    tide.sleep(milliseconds(req))
  end
end)
]]

---@class test.HttpAppOptions
---@field linger? string
---@field drain? string
---@field listen? string more options of the listener, as Lua
---@field script? string what comes behind
---@field env? table

---@param options? test.HttpAppOptions
---@return test.Process
function M.start(options)
  options = options or {}
  local env = { LINGER = options.linger or "300ms", DRAIN = options.drain or "10s" }
  for name, value in pairs(options.env or {}) do env[name] = value end
  local app = proc.start {
    script = SCRIPT:gsub("@LISTEN@", options.listen or "") .. (options.script or ""), env = env,
  }
  app:wait_ready()
  return app
end

return M
