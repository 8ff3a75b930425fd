-- A small order service: how it rises, when it takes traffic, how it ebbs.
local tide = require "moontide"
local log, sleep = tide.log, tide.sleep

tide.config { name = "quickstart", shutdown = { linger = "1s", drain = "10s" } }

local attempt = 0
tide.component("db", {
  retry = tide.retry { base = "200ms", max = "2s", attempts = 5 },
  start = function(ctx)
    attempt = attempt + 1
    sleep("50ms")
    if attempt < 3 then error("connection refused, attempt " .. attempt) end
    ctx.orders = {}
  end,
  stop = function() log.info("db closed") end,
})
tide.component("cache", {
  needs = { "db" },
  start = function() sleep("100ms") end,
  stop = function() log.info("cache written back") end,
})
tide.check("queue", { every = "2s" }, function() return { depth = 0 } end)
tide.worker("outbox", { every = "1s", drain = "5s" }, function() sleep("10ms") end)

local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT" or 8080) }
server:get("/", function() return "hello from moontide\n" end)
server:get("/orders/:id", function(req) return { id = req.params.id, total = 42 } end)
server:get("/slow", function() sleep("2s") return { slow = true } end)

tide.shutdown:phase("flush-metrics", { after = "before-actor-system-terminate", timeout = "3s" })
tide.shutdown:task("flush-metrics", "push", function(reason)
  sleep("50ms")
  log.info("metrics pushed", { reason = tostring(reason) })
end)
tide.shutdown:task("service-stop", "deregister", function() sleep("20ms") end)
