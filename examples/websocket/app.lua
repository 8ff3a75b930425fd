-- An echo over WebSocket, and how a drain ends it.
local tide = require "moontide"

local here = debug.getinfo(1, "S").source:match "^@(.*/)" or "./"
package.path = here .. "?.lua;" .. package.path
local websocket = require "websocket"

tide.config { name = "echo", shutdown = { linger = "0s" } }

local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT") or 8080 }

server:get("/ws", { stream = true }, function(req, res)
  return websocket.serve(req, res, function(ws)
    for message, kind in ws:messages() do ws:send(message, kind) end
  end)
end)
