-- What the manifest beside this file runs.
local tide = require "moontide"

tide.config {
  name = "orders",
  -- The preStop hook has waited until no endpoint list has us any more.
  shutdown = { linger = 0, drain = "25s", grace = "60s", prestop = "10s" },
}

local patient = tide.retry { base = "1s", max = "10s", give_up_after = "1m" }
tide.startup:phase("db", { on_fail = patient })
tide.startup:task("db", "connect", function() tide.sleep("10ms") end)
tide.check("db", { every = "5s" }, function() return true end)

local port = tonumber(os.getenv "PORT" or 8080)
local server = tide.http.listen { name = "api", host = "0.0.0.0", port = port }
server:get("/orders/:id", function(req) return { id = req.params.id } end)
