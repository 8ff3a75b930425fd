-- What the unit beside this file runs, with or without its socket unit.
local tide = require "moontide"

tide.config {
  name = "orders",
  shutdown = { linger = "3s", grace = "45s" }, -- TimeoutStopSec of the unit
}

tide.worker("outbox", { every = "1s", drain = "10s" }, function() tide.sleep("10ms") end)

-- The socket of orders.socket; without that unit the port.
local server = tide.http.listen {
  name = "api", fd = "api", host = "0.0.0.0", port = tonumber(os.getenv "PORT" or 8080),
}
server:get("/orders/:id", function(req) return { id = req.params.id } end)
