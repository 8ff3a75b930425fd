-- `moontide healthcheck`: the answer of the management listener as an exit code.
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
local up = true
tide.on_signal("SIGHUP", function() up = false end)
tide.check("db", { every = "20ms", failures = 1 }, function() return up end)
tide.http.listen { port = tonumber(os.getenv "PORT") }
]]

local function healthcheck(port, ...)
  return proc.run { argv = { "healthcheck", ... }, manage = false,
    env = { MOONTIDE_MANAGE__PORT = port } }
end

describe("healthcheck", function()
  it("exits 0 when the process is ready, and shows the answer", function()
    local app = proc.start { script = APP }
    app:wait_ready()
    local code, out, err = healthcheck(app.manage_port)
    assert.equal(0, code, err)
    assert.matches("^200 {\"status\":\"ready\"", out)
    code, out, err = healthcheck(app.manage_port, "--quiet")
    assert.same({ 0, "", "" }, { code, out, err })
  end)

  it("exits 1 when it is not", function()
    local app = proc.start { script = APP }
    app:wait_ready()
    app:signal("HUP")
    app:wait_log(function(record) return record.line:find "db" and record.level ~= "info" end)
    local code, out, err = healthcheck(app.manage_port)
    assert.equal(1, code)
    assert.equal("", out)
    assert.matches("^503 ", err)
    local url = ("http://127.0.0.1:%d/health/live"):format(app.manage_port)
    assert.equal(0, (healthcheck(app.manage_port, "--url", url)))
  end)

  it("exits 1 when nobody listens", function()
    local code, out, err = healthcheck(proc.free_port())
    assert.equal(1, code)
    assert.equal("", out)
    assert.matches("cannot connect to 127.0.0.1 port %d+: ECONNREFUSED", err)
  end)

  it("does not wait for ever", function()
    local uv = require "luv"
    local mute = uv.new_tcp()
    mute:bind("127.0.0.1", 0)
    mute:listen(8, function() end)
    finally(function() mute:close() end)
    local code, _, err = healthcheck(mute:getsockname().port, "--timeout", "0.2")
    assert.equal(1, code)
    assert.matches("no answer within 200ms", err)
  end)
end)
