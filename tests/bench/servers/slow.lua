-- luacheck: globals core
-- HAProxy: answers /slow?ms=N after N milliseconds.
core.register_service("slow", "http", function(applet)
  core.msleep(tonumber(applet.qs:match "ms=(%d+)"))
  applet:set_status(200)
  applet:add_header("content-length", "4")
  applet:start_response()
  applet:send "slow"
end)
