-- Why a container ended badly is left where the kubelet looks, in /dev/termination-log, if that is
-- there.
local proc = require "support.process"

-- A namespace with a /dev of its own, whose file is printed after the program's end.
local WRAPPER = [[mount -t tmpfs tmpfs /dev && : > /dev/termination-log && "$0" "$1"
code=$?; cat /dev/termination-log; exit $code]]

local works = os.execute "unshare -m mount -t tmpfs tmpfs /dev 2>/dev/null" == true

local function run(script)
  local dir = proc.temp_dir()
  proc.write_file(dir .. "/app.lua", script)
  return proc.run { program = "unshare",
    argv = { "-m", "sh", "-c", WRAPPER, os.getenv "MOONTIDE", dir .. "/app.lua" } }
end

describe("the termination log", function()
  for name, case in pairs {
    ["a failed startup"] = { 1, "exit 1: .*db.*refused",
      "require('moontide').startup:phase('db', function() error('refused', 0) end)" },
    ["a script that is wrong"] = { 78, "exit 78: .*unknown phase",
      "require('moontide').startup:phase('db', { after = 'nowhere' })" },
  } do
    it("names the reason after " .. name, function()
      if not works then return pending "unshare -m is refused here" end
      local code, out, err = run(case[3])
      assert.equal(case[1], code, err)
      assert.matches("^" .. case[2] .. "[^\n]*\n$", out)
    end)
  end

  it("stays empty after a clean end", function()
    if not works then return pending "unshare -m is refused here" end
    local code, out, err = run "require 'moontide'"
    assert.equal(0, code, err)
    assert.equal("", out)
  end)
end)
