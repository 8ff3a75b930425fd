--- A command whose output is lost (to a full disk, here) has not done what it was asked for, and
--- says so; a reader that has seen enough is no error.
local console = require "support.console"
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
tide.config { name = "writer", manage = false }
tide.http.listen { port = tonumber(os.getenv "PORT") }
]]

-- Runs a command of the shell beside a live process. Returns its code, stdout and stderr.
local function shell(app, line)
  return proc.run {
    program = "bash", manage = false, dir = app and app.dir,
    argv = { "-c", "set -o pipefail; " .. line },
  }
end

describe("output that cannot be written", function()
  local app

  before_each(function()
    app = proc.start { script = SCRIPT, manage = false }
    console.connect(app):close() -- it listens
  end)

  it("is an error of every command that prints", function()
    for _, command in ipairs { "version", "status writer", "status writer --json",
      "eval writer --json 1", "eval writer 'print(1)'", "drain writer --dry", "--help" } do
      local code, _, err = shell(app, "$MOONTIDE " .. command .. " >/dev/full")
      assert.equal(1, code, command)
      assert.matches("^moontide: cannot write to standard output", err, command)
    end
  end)

  it("leaves another code as it is", function()
    local code, _, err = shell(app, "$MOONTIDE eval writer 'print(1) error \"x\"' >/dev/full")
    assert.equal(1, code)
    assert.matches("x\n", err)
    code = shell(app, "$MOONTIDE eval writer --timeout 0.2s 'print(1) tide.sleep(9)' >/dev/full")
    assert.equal(124, code)
  end)

  it("is none when the reader has seen enough", function()
    local code, out, err = shell(app,
      "$MOONTIDE eval writer 'for i = 1, 99999 do print(i) end' | head -n 2")
    assert.same({ 0, "1\n2\n", "" }, { code, out, err })
  end)
end)
