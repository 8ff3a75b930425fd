-- `moontide check`: nothing runs, everything that is wrong is said.
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "4s" }, manage = { token = "hunter2" } }
tide.startup:phase("db", { timeout = "5s" }, function() error "must not run" end)
tide.startup:phase("cache", { after = "db", timeout = "2s" }, function() error "must not run" end)
tide.shutdown:phase("flush", { after = "service-stop", timeout = "3s" })
tide.shutdown:task("flush", "push", function() error "must not run" end)
tide.http.listen { port = tonumber(os.getenv "PORT") }
tide.run_until_terminated()
]]

local function check(script, flags, env)
  return proc.run { argv = { "check" }, script = script, flags = flags, env = env, manage = false }
end

describe("check", function()
  it("prints settings with origin, worst case and critical path, and runs nothing", function()
    local code, out, err = check(APP, {}, { MOONTIDE_SHUTDOWN__DRAIN = "20s" })
    assert.equal(0, code, err)
    assert.matches("shutdown%.linger +4s +config [^\n]*app%.lua:2\n", out)
    assert.matches("shutdown%.drain +20s +environment MOONTIDE_SHUTDOWN__DRAIN\n", out)
    assert.matches("startup%.timeout +2m +default\n", out)
    assert.matches("manage%.token +%*+ ", out)
    assert.not_matches("hunter2", out)
    assert.matches("startup: 2 phases, total 2m %(default%)\n  worst case +7s\n"
      .. "  critical path +7s: db %-> cache\n", out)
    assert.matches("shutdown: 14 phases, total 40s %(default%)\n  worst case +1m%d+s", out)
    assert.matches("service%-stop %-> flush %-> before%-cluster%-shutdown", out)
    assert.matches("app.lua: ok\n$", out)
    assert.not_matches("must not run", out .. err)
  end)

  it("prints the listeners, with what they do not leave to the settings", function()
    local code, out, err = check [[
      local tide = require "moontide"
      tide.http.listen { name = "api", port = 0, idle_close_spread = "2s",
        limits = { body = "2KiB" }, timeouts = { idle = "2m", body_min_rate = "1KiB" } }
      tide.http.listen { name = "inner", path = "/run/inner.sock" }
      tide.http.listen { name = "six", port = 80, host = "::", v6only = true }
    ]]
    assert.equal(0, code, err)
    assert.matches("listeners:\n"
      .. "  api    127.0.0.1:any    idle_close_spread 2s, limits.body 2048,"
      .. " timeouts.body_min_rate 1024, timeouts.idle 2m\n"
      .. "  inner  /run/inner.sock\n"
      .. "  six    [::]:80          v6only true\n", out, 1, true)
  end)

  it("runs no task that the main chunk spawned", function()
    local code, out = check([[
      local tide = require "moontide"
      tide.spawn(function() print "must not run" end)
      tide.root:spawn(function() print "must not run" end)
    ]])
    assert.equal(0, code)
    assert.not_matches("must not run", out)
  end)

  it("says where a main chunk spins", function()
    local code, _, err = check [[
      require("moontide").timeout("200ms", function()
        while true do end
      end)
    ]]
    assert.equal(78, code)
    assert.matches("app.lua:%d: interrupted: ", err)
  end)

  it("binds no port", function()
    local server = proc.start { script = [[
local tide = require "moontide"
tide.http.listen { port = tonumber(os.getenv "PORT") }
]] }
    server:wait_ready()
    local code, _, err = check(APP, {}, { PORT = server.port, MOONTIDE_MANAGE__PORT =
      server.manage_port })
    assert.equal(0, code, err)
  end)

  it("says whether the shutdown fits a grace period", function()
    local code, out, err = check(APP, { "-q", "--grace", "60", "--prestop", "10" })
    assert.equal(0, code)
    assert.equal("shutdown fits the grace period of 1m: prestop 10s + shutdown total 40s + 1s ="
      .. " 51s\n", out)
    assert.equal("", err)
    code, out, err = check(APP, { "-q", "--grace", "30s" })
    assert.equal(78, code)
    assert.equal("", out)
    assert.matches("does not fit the grace period of 30s: .* = 41s .* set shutdown.timeout to 29s",
      err)
    assert.matches("warning: prestop 0s %+ linger 4s is less than 10s", err)
  end)

  it("goes by shutdown.grace when the command line does not say", function()
    local code, out = check(APP, { "-q", "--set", "shutdown.grace=30", "--set",
      "shutdown.prestop=8" })
    assert.equal(0, code)
    assert.matches("fits the grace period of 30s: prestop 8s %+ shutdown total 21s", out)
  end)

  it("lists every error of the settings with its place", function()
    local code, out, err = check([[
local tide = require "moontide"
tide.config { shutdown = { linger = -1, timeot = 3 }, log = { level = "loud" } }
]], {}, { MOONTIDE_MANAGE__PORT = "http" })
    assert.equal(78, code)
    assert.equal("", out)
    assert.matches("app.lua:2: shutdown.linger: %-1 is negative", err)
    assert.matches("app.lua:2: unknown key \"shutdown.timeot\"; did you mean", err)
    assert.matches("app.lua:2: log.level: \"loud\"", err)
    assert.matches("environment MOONTIDE_MANAGE__PORT: manage.port: \"http\" is not", err)
  end)

  local broken = {
    { "a syntax error", "local x =\n", "app.lua:2:" },
    { "an undefined phase", [[
require "moontide".shutdown:phase("a", { after = "servce-stop" })
]], "app.lua:1: .*did you mean \"service%-stop\"" },
    { "a cycle", [[
local tide = require "moontide"
tide.startup:phase("a", { after = "b" })
tide.startup:phase("b", { after = "a" })
]], "cycle: a %-> b %(after, [^ ]*app.lua:3%) %-> a %(after, [^ ]*app.lua:2%)" },
    { "an impossible budget", [[
local tide = require "moontide"
tide.shutdown:phase("a", { after = "service-stop", timeout = "50s" })
]], "timeout 50s %(call [^ ]*app.lua:2%) is longer than the shutdown total of 40s" },
    { "a script that fails", "\nerror 'no licence'\n", "app.lua:2: no licence" },
  }
  for _, case in ipairs(broken) do
    it("refuses " .. case[1], function()
      local code, out, err = check(case[2])
      assert.equal(78, code, err)
      assert.equal("", out)
      assert.matches(case[3], err)
    end)
  end

  it("refuses a file that is not there", function()
    local code, _, err = proc.run { argv = { "check", "/nowhere/app.lua" } }
    assert.equal(78, code)
    assert.matches("/nowhere/app.lua", err)
  end)

  it("exits 1 instead of 78 where the settings want the seed's codes", function()
    local code = check([[
local tide = require "moontide"
tide.config { exit_codes = "seed" }
tide.shutdown:phase("a", { after = "servce-stop" })
]])
    assert.equal(1, code)
  end)
end)
