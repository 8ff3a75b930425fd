-- Go's net/http. Its compiler is large: scripts/setup.sh --bench installs it.
local foreign = require "support.foreign"
local proc = require "support.process"

describe("Go's net/http", function()
  local compiler = foreign.find "go"
  if not compiler then
    return pending "golang-go is not installed (scripts/setup.sh --bench does)"
  end
  local program = os.getenv "MOONTIDE_BUILD" .. "/go_client"
  local code, out, err = proc.run {
    program = compiler, argv = { "build", "-o", program, "." }, manage = false,
    cwd = foreign.clients .. "go", timeout = 200,
    env = { GOCACHE = os.getenv "MOONTIDE_BUILD" .. "/go_cache", CGO_ENABLED = "0" },
  }
  assert(code == 0, out .. err)
  local go = { program = program }

  it("gets and sends all kinds of bodies on one connection", function()
    foreign.basics(go)
  end)

  it("meets no error in a drain, before it is refused", function()
    -- eight at a time, each asking every few milliseconds for a second
    assert.is_true(foreign.drain(go).answered > 100)
  end)
end)
