-- An order service of which two run. Everything that matters for a restart without
-- a failed request is the linger: it must be longer than the load balancer needs to
-- see the 503 of /health/ready. haproxy.cfg asks every 200 ms and believes the third
-- 503, so it has seen it after 600 ms at most.
local tide = require "moontide"

tide.config { name = "orders", shutdown = { linger = "1s", drain = "10s" } }

local version = os.getenv "VERSION" or "1"
local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT" or 8080) }

server:get("/orders/:id", function(req)
  tide.sleep("5ms") -- look it up
  return { id = req.params.id, version = version }
end)

server:post("/orders/:id", function(req)
  tide.sleep("20ms") -- store it
  return 201, { id = req.params.id, version = version }
end)
