-- The programs of examples/ that embed the library: built as their README says, against an installed
-- moontide, and run.
local http = require "support.http_client"
local proc = require "support.process"

local build = os.getenv "MOONTIDE_BUILD"
local examples = os.getenv "MOONTIDE_SOURCE" .. "/examples/"

local function sh(command)
  local code, out, err = proc.run {
    program = "/bin/sh", argv = { "-c", command }, timeout = 180,
  }
  assert.equal(0, code, command .. "\n" .. out .. err)
  return out
end

-- Programs that are not instrumented cannot link the instrumented library.
if build:find "asan" or build:find "tsan" then
  describe("an embedding example", function()
    pending "is built against the normal build"
  end)
  return
end

local prefix

local function built(name)
  if not prefix then
    prefix = proc.temp_dir() .. "/prefix"
    sh(("cmake --install %s --prefix %s"):format(build, prefix))
  end
  local dir = proc.temp_dir()
  sh(("cmake -S %s%s -B %s -DCMAKE_PREFIX_PATH=%s -DCMAKE_C_FLAGS='-Wall -Wextra -Werror'"
    .. " >/dev/null && cmake --build %s"):format(examples, name, dir, prefix, dir))
  return dir .. "/" .. name
end

describe("examples/embed-lua", function()
  it("serves from the program's own Lua state, which outlives the host", function()
    local app = proc.start {
      program = built "embed-lua", argv = { examples .. "embed-lua/app.lua" }, manage = false,
    }
    app:wait_log { msg = "ready" }
    assert.equal(200, assert(http.get(app.port, "/visit/ann")).status)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.equal("hello, ann\nhello, and goodbye, after 1\nvisits: 1\n", app:stdout())
  end)
end)
