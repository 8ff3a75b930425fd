-- What the composition beside this file runs.
local tide = require "moontide"

tide.config {
  name = "orders",
  shutdown = { linger = "3s", grace = "45s" }, -- stop_grace_period of the composition
}

tide.check("self", { every = "5s" }, function() return true end)

local port = tonumber(os.getenv "PORT" or 8080)
local server = tide.http.listen { name = "api", host = "0.0.0.0", port = port }
server:get("/orders/:id", function(req) return { id = req.params.id } end)
