--- What the drain bench stops.
local tide = require "moontide"

tide.config {
  log = { level = "warn" }, manage = "api", report = { keep = 0 },
  limits = { connections = 19000, requests_per_connection = 0 },
  shutdown = { linger = os.getenv "LINGER" },
}

local server = tide.http.listen { name = "api", port = math.tointeger(os.getenv "PORT") }

server:get("/orders/:id", function(req) return "order " .. req.params.id end)
server:get("/slow", function(req)
  tide.sleep(tonumber(req.query.ms) / 1000)
  return "slow"
end)
