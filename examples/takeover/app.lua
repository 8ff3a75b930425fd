-- An order service that is replaced while it serves. The name is what a successor finds
-- it by; the linger is for kept connections: each is used once more in it, and its answer
-- says that it ends.
local tide = require "moontide"

tide.config { name = "orders", shutdown = { linger = "500ms", drain = "10s" } }

local version = os.getenv "VERSION" or "1"

tide.startup:phase("caches")
tide.startup:task("caches", "warm", function() tide.sleep "300ms" end)

local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT" or 8080) }

server:get("/orders/:id", function(req)
  tide.sleep("5ms") -- look it up
  return { id = req.params.id, version = version }
end)

server:post("/orders/:id", function(req)
  tide.sleep("20ms") -- store it
  return 201, { id = req.params.id, version = version }
end)
