-- A stop signal that the loop cannot take up, because Lua spins, starts the total all the same: the
-- Lua is interrupted after a second, or the process ends with the total.
local http = require "support.http_client"
local proc = require "support.process"

local SPIN = "while true do pcall(function() while true do end end) end"
local STUCK = "local _ = (('a'):rep(40)):find(('a?'):rep(40) .. ('a'):rep(40) .. 'b')"

-- Where it spins: a script around it that says so on standard output first.
local places = {
  ["the main chunk"] = [[
    local tide = require "moontide"
    tide.shutdown:task("service-stop", "stop", function() print("stopped") io.stdout:flush() end)
    spin()
  ]],
  ["a task of the script"] = [[
    local tide = require "moontide"
    tide.shutdown:task("service-stop", "stop", function() print("stopped") io.stdout:flush() end)
    tide.spawn(spin)
  ]],
  ["a luv callback"] = [[
    local tide, uv = require "moontide", require "luv"
    tide.shutdown:task("service-stop", "stop", function() print("stopped") io.stdout:flush() end)
    local timer = uv.new_timer()
    timer:start(10, 0, spin)
  ]],
  ["a check"] = [[
    local tide = require "moontide"
    tide.shutdown:task("service-stop", "stop", function() print("stopped") io.stdout:flush() end)
    tide.check("bad", { timeout = "30s", every = "60s" }, spin)
    tide.spawn(function() tide.sleep(60) end)
  ]],
  ["a handler"] = [[
    local tide = require "moontide"
    tide.shutdown:task("service-stop", "stop", function() print("stopped") io.stdout:flush() end)
    tide.http.listen { port = tonumber(os.getenv "PORT") }:get("/spin", spin)
  ]],
}

local function start(place, body, env)
  local script = ("local function spin() io.stdout:write('spins\\n') io.stdout:flush() %s end\n%s")
    :format(body, places[place])
  env = env or {}
  env.MOONTIDE_SHUTDOWN__LINGER = 0
  local app = proc.start { script = script, env = env }
  if place == "a handler" then
    app:wait_ready()
    assert(assert(http.connect(app.port)):send_request("GET", "/spin"))
  end
  app:wait_stdout "spins"
  return app
end

describe("SIGTERM while Lua spins in", function()
  for place in pairs(places) do
    it(place .. ": it is interrupted, and the pipeline runs", function()
      local app = start(place, SPIN)
      app:signal "TERM"
      app:wait()
      local took = app:seconds_to_end()
      assert.is_true(took >= 0.9 and took < 4, took .. " s")
      assert.truthy(app:wait_log { msg = "stopped", reason = "process-terminate" })
      if place == "a luv callback" then -- nothing but the traceback names the culprit
        assert.matches("app.lua:1:", app:wait_log { kind = "luv callback" }.traceback)
      end
      if place ~= "the main chunk" then
        assert.truthy(app:stdout():find("stopped", 1, true), app:stderr())
      end
    end)

    it(place .. ": one C call ends with the total", function()
      local app = start(place, STUCK, { MOONTIDE_SHUTDOWN_TIMEOUT = 1.5 })
      app:signal "TERM"
      local code = app:wait()
      assert.equal(1, code)
      assert.truthy(app:wait_log { component = "watchdog" }.msg:find("shutdown total", 1, true))
      if place == "the main chunk" then
        assert.matches("app.lua$", app:wait_log { msg = "still running", what = "main chunk" }.site)
      end
      local took = app:seconds_to_end()
      assert.is_true(took >= 1.4 and took < 3, took .. " s")
    end)
  end

  it("the main chunk: the total is the one that the script has set by then", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.config { shutdown = { timeout = 1.2, linger = 0 } }
      io.stdout:write "spins\n" io.stdout:flush()
    ]] .. STUCK }
    app:wait_stdout "spins"
    app:signal "TERM"
    assert.equal(1, (app:wait(5)))
    assert.truthy(app:wait_log { component = "watchdog" })
  end)
end)
