-- Ten startup phases with nothing in them, an application listener, no linger.
local tide = require "moontide"

tide.config { name = "ten-phases", shutdown = { linger = 0 } }
for i = 1, 10 do tide.startup:phase("phase-" .. i) end
tide.http.listen { name = "api", port = tonumber(os.getenv "PORT" or 0) }
