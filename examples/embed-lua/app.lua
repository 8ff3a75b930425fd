-- Runs in the program's own Lua state: `greet` and `visits` are the program's.
local tide = require "moontide"

tide.config { manage = false, shutdown = { linger = "100ms" } }

local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT" or 8080) }
server:get("/visit/:name", function(req)
  visits = visits + 1
  greet(req.params.name)
  return { visits = visits }
end)

tide.shutdown:task("service-stop", "goodbye", function()
  greet("and goodbye, after " .. visits)
end)
