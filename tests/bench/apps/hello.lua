--- 30 routes and one plain Lua handler: no middleware, no parameter. What is measured is the way
--- from the bytes to a handler in its own coroutine, and back.
local tide = require "moontide"

tide.config {
  log = { level = "warn" }, manage = "api",
  limits = { connections = 20000, requests_per_connection = 0 },
  shutdown = { linger = 0 },
}

local server = tide.http.listen { name = "api", port = math.tointeger(os.getenv "PORT") }

for i = 1, 10 do
  server:get("/items" .. i .. "/:id", function(req) return "item " .. req.params.id end)
  server:post("/items" .. i, function() return 201, "made" end)
end
for i = 1, 9 do
  server:get("/pages/page" .. i, function() return "page" end)
end
server:get("/hello", function() return "hello" end)
