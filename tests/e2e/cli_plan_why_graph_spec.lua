-- `moontide plan`, `why` and `graph`: what the order is, and why.
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { shutdown = { phases = { ["cluster-leave"] = { enabled = false } } } }
tide.startup:phase("db", { on_fail = tide.retry { base = "1s", attempts = 3 } }, function() end)
tide.startup:phase("cache", { after = "db", timeout = "2s" })
tide.shutdown:phase("flush", { after = "before-actor-system-terminate", timeout = "3s" })
tide.shutdown:task("flush", "push", function() end)
tide.worker("mailer", { drain = "7s" }, function() end)
]]

local function moontide(command, flags, env)
  return proc.run { argv = command, script = APP, flags = flags, env = env }
end

describe("plan", function()
  it("prints order, time, tasks and origin of both pipelines", function()
    local code, out, err = moontide({ "plan" }, {},
      { MOONTIDE_SHUTDOWN__PHASES__SERVICE_UNBIND__TIMEOUT = "6" })
    assert.equal(0, code, err)
    assert.matches("\n +1  db +30s +db +retry %(base 1s, max 30s, 3 attempts%) +default\n", out)
    assert.matches("\n +2  cache +2s +%- +call [^\n]*app.lua:4\n", out)
    assert.matches("\nshutdown, total 40s %(default%)\n", out)
    assert.matches("service%-unbind +6s [^\n]*environment MOONTIDE_SHUTDOWN__PHASES__", out)
    assert.matches("service%-stop +8s +worker:mailer +drain 7s of worker \"mailer\" %+ 1s", out)
    assert.matches("cluster%-leave +5s +%- +disabled +default", out)
    assert.matches("flush +3s +push +call [^\n]*app.lua:5\n +14  actor%-system%-terminate", out)
  end)

  it("prints one of them when asked", function()
    local _, out = moontide({ "plan" }, { "--pipeline", "startup" })
    assert.matches("^startup", out)
    assert.not_matches("shutdown", out)
  end)
end)

describe("why", function()
  it("prints the chain of edges with their lines", function()
    local code, out = moontide { "why", "before-actor-system-terminate", "flush" }
    assert.equal(0, code)
    assert.matches("^before%-actor%-system%-terminate runs before flush %(shutdown%):\n", out)
    assert.matches("flush asks to be after before%-actor%-system%-terminate ", out)
    assert.matches("app.lua:5\n$", out)
    code, out = moontide { "why", "db", "cache" }
    assert.equal(0, code)
    assert.matches("%(startup%):\n  db %-> cache +cache asks to be after db", out)
  end)

  it("exits 1 when there is no such chain", function()
    local code, out, err = moontide { "why", "flush", "service-stop" }
    assert.equal(1, code)
    assert.equal("", out)
    assert.matches("does not run before .* but after it; ask why service%-stop flush", err)
    assert.matches("did you mean \"cache\"", (select(3, moontide { "why", "db", "cahce" })))
    assert.matches("are in different pipelines", (select(3, moontide { "why", "db", "flush" })))
  end)
end)

describe("graph", function()
  it("draws for Mermaid, and for Graphviz", function()
    local code, out = moontide { "graph" }
    assert.equal(0, code)
    assert.matches("^flowchart TD\n", out)
    assert.matches("%(%[\"flush\"%]%)", out)
    code, out = moontide({ "graph" }, { "--format", "dot", "--pipeline", "startup" })
    assert.equal(0, code)
    assert.matches("^digraph startup {\n", out)
    assert.matches("\n  \"db\" %-> \"cache\";\n}\n$", out)
  end)
end)
