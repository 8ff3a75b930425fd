-- `moontide report`: what a process left behind, as text and as a drawing.
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { name = "orders", shutdown = { linger = "20ms" } }
tide.startup:phase("db", {}, function() tide.sleep("30ms") end)
tide.startup:phase("cache", {}, function() end)
tide.shutdown:task("service-stop", "slow", { timeout = "60ms" }, function() tide.sleep("5s") end)
tide.shutdown:task("service-stop", "<b>&\27[2J", function() error "no \"disk\" left" end)
]]

local function moontide(argv, env)
  return proc.run { argv = argv, env = env }
end

-- Runs the application; where its report is, and the path of that.
local function make_report()
  local dir = proc.temp_dir()
  local code, _, err = proc.run { script = APP, env = { MOONTIDE_REPORT__DIR = dir } }
  assert.equal(0, code, err)
  local listed, out = moontide { "report", "--list", dir }
  assert.equal(0, listed)
  return dir, (out:match "^(%S+)\n$")
end

describe("report", function()
  after_each(proc.cleanup)

  it("shows phases and tasks, what went wrong, and what the end waited for", function()
    local dir, path = make_report()
    for _, argv in ipairs { { "report", dir }, { "report", path } } do
      local code, out, err = moontide(argv)
      assert.equal(0, code, err)
      assert.matches("^orders, process %d+, exit code 0: script%-end\n", out)
      assert.matches("\nstartup ok in %d+ ms of 2m, began %d%d%d%d%-%d%d%-%d%d ", out)
      assert.matches("\n  %*  db +ok +0 ms +%d+ ms +|%-+ *|\n", out)
      assert.matches("\n  %*    slow +timed_out +%d+ ms +%d+ ms +| *=+ *|\n", out)
      assert.matches("\n  slow: timed out: its own timeout of 0.06 s\n      %S*app.lua:5: in ", out)
      assert.matches("\n  and %d+ empty phases\n", out)
      assert.matches("<b>&\u{FFFD}%[2J: [^\n]*no \"disk\" left\n", out)
      assert.is_nil(out:find "\27")
    end
  end)

  it("draws a timeline that is well-formed XML", function()
    local dir = make_report()
    local svg = dir .. "/timeline.svg"
    local code, out, err = moontide { "report", "--svg", svg, dir }
    assert.equal(0, code, err)
    assert.equal("", out)
    local drawing = assert(proc.read_file(svg))
    assert.matches("^<svg xmlns=\"http://www.w3.org/2000/svg\" ", drawing)
    assert.matches(">&lt;b&gt;&amp;\u{FFFD}%[2J<", drawing)
    local parsed = proc.run { program = "python3", argv = { "-c",
      "import sys, xml.dom.minidom as m; m.parse(sys.argv[1])", svg } }
    assert.equal(0, parsed)
    code, out = moontide { "report", "--svg", "-", dir }
    assert.equal(0, code)
    assert.equal(drawing, out)
  end)

  it("looks where a process of that name writes", function()
    local state = proc.temp_dir()
    local env = { XDG_STATE_HOME = state, STATE_DIRECTORY = false, MOONTIDE_STATE_DIR = false }
    assert.equal(0, (proc.run { script = APP, env = env }))
    local code, out, err = moontide({ "report", "--name", "orders" }, env)
    assert.equal(0, code, err)
    assert.matches("^orders, process ", out)
    local _, message
    code, _, message = moontide({ "report", "--name", "order" }, env)
    assert.equal(1, code)
    assert.matches("/moontide/order/reports: no reports there", message, 1, true)
  end)

  it("says what is wrong with anything else", function()
    local dir = proc.temp_dir()
    local function refused(pattern, ...)
      local code, out, err = moontide { "report", ... }
      assert.equal(1, code)
      assert.equal("", out)
      assert.matches(pattern, err)
    end
    refused(": no reports there\n$", dir)
    refused("none.json: No such file", dir .. "/none.json")
    for text, what in pairs {
      ["not JSON"] = "it is no exit report", ["[]"] = "it is no exit report",
      ["{\"format\":2}"] = "its format is 2, this moontide reads 1",
      ["{\"format\":1,\"pipelines\":{}}"] = "it is a damaged exit report",
      ["{\"format\":1,\"exit_code\":0,\"pipelines\":[{\"kind\":\"startup\"}]}"] =
        "it is a damaged exit report",
    } do
      proc.write_file(dir .. "/x.json", text)
      refused("/x.json: " .. what .. "\n$", dir .. "/x.json")
    end
    refused("/missing/t.svg: No such file", "--svg", dir .. "/missing/t.svg",
      (select(2, make_report())))
    local code, _, err = moontide { "report", "--list", "--svg", "-", dir }
    assert.equal(64, code)
    assert.matches("do not go together", err)
  end)
end)
