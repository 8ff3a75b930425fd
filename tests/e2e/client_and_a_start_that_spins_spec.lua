--- A start that does not let the loop turn has no console yet. Who asks for the process is told
--- that it lives, and what its watchdog knows: not that there is none.
local oob = require "support.oob"
local proc = require "support.process"
local uv = require "luv"

-- Minutes in one call of C.
local SPINS = [[
local tide = require "moontide"
tide.config { name = "app", manage = false, startup = { timeout = "60s" } }
local function spin()
  local s = ("a"):rep(60)
  string.find(s, ("a?"):rep(60) .. s)
end
if os.getenv "PHASE" then tide.startup:phase("warm-up", spin) else spin() end
tide.http.listen { port = tonumber(os.getenv "PORT") }
]]

local function client(app, ...)
  return proc.run { argv = { ... }, dir = app.dir, manage = false }
end

describe("a start that spins", function()
  local cases = { ["in the main chunk"] = false, ["in a phase"] = "1" }
  for name, phase in pairs(cases) do
    it(name .. " is found by its watchdog", function()
      local app = proc.start { script = SPINS, env = { PHASE = phase } }
      oob.connect(app):close()
      for _, argv in ipairs { { "status", "app" }, { "eval", tostring(app.pid), "1" },
        { "status" } } do
        local code, out, err = client(app, table.unpack(argv))
        assert.same({ 69, "" }, { code, out })
        assert.matches(("^moontide: process %d %%(app%%) lives, but it has no console"):format(
          app.pid), err)
        assert.matches("starting for", err, 1, true)
      end
      local code, _, err = client(app, "status", "other")
      assert.equal(69, code)
      assert.matches("no live process \"other\"", err, 1, true)
      app:kill()
    end)
  end

  it("leaves no line behind when it is killed", function()
    local app = proc.start { script = SPINS }
    oob.connect(app):close()
    app:kill()
    app:wait()
    local code, _, err = client(app, "status", "app")
    assert.equal(69, code)
    assert.matches("no live process \"app\"", err, 1, true)
    assert.is_nil(uv.fs_stat(oob.path(app)))
  end)
end)
