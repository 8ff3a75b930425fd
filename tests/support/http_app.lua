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
local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT") }
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

---@param options? { linger?: string, drain?: string, script?: string }
---@return test.Process
function M.start(options)
  options = options or {}
  local app = proc.start {
    script = SCRIPT .. (options.script or ""),
    env = { LINGER = options.linger or "300ms", DRAIN = options.drain or "10s" },
  }
  app:wait_ready()
  return app
end

return M
