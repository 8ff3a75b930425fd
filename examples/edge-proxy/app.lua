-- The routes of the proxy: port = target, read at the start and again at each SIGHUP. A file that
-- is not right changes nothing.
local tide = require "moontide"

tide.config { shutdown = { linger = "500ms", drain = "10s" } }

local path = os.getenv "ROUTES" or "routes.lua"

local function read_routes()
  local chunk = assert(loadfile(path, "t", {}))
  local routes = chunk()
  assert(type(routes) == "table", path .. " does not return a table")
  for port, target in pairs(routes) do
    assert(math.type(port) == "integer" and type(target) == "string",
      path .. ": a route is [port] = \"address:port\"")
  end
  return routes
end

local function apply()
  local routes = read_routes()
  for port, target in pairs(routes) do proxy.route(port, target) end
  proxy.forget_others()
  tide.log.info("routes", routes)
end

tide.startup:phase("routes", apply)

tide.on_signal("SIGHUP", function()
  local ok, message = pcall(apply)
  if not ok then tide.log.warn("the routes stay as they are", { error = message }) end
end)
