--- What the HTTP bench measures: 30 routes and 3 middlewares, none of which does anything, so that
--- what is measured is the host.
local tide = require "moontide"

tide.config {
  log = { level = "warn" }, manage = "api",
  limits = { connections = 20000, requests_per_connection = 0 },
  shutdown = { linger = 0 },
}

local server = tide.http.listen { name = "api", port = math.tointeger(os.getenv "PORT") }

for _ = 1, 3 do
  server:use(function(req, next) return next(req) end)
end

for i = 1, 10 do
  server:get("/items" .. i .. "/:id", function(req) return "item " .. req.params.id end)
  server:post("/items" .. i, function() return 201, "made" end)
end
for i = 1, 8 do
  server:get("/pages/page" .. i, function() return "page" end)
end
server:delete("/orders/:id", function() end)
server:get("/orders/:id", function(req) return "order " .. req.params.id end)
