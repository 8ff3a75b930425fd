-- Which command is meant, and what is said of a command line that means none.
local proc = require "support.process"

local COMMANDS = { "run", "check", "plan", "why", "graph", "report", "status", "console", "eval",
  "tail", "drain", "healthcheck", "version" }

local function moontide(...)
  local code, out, err = proc.run { argv = { ... }, manage = false }
  return code, out, err
end

describe("the command line", function()
  it("without a word shows the help and exits 64", function()
    local code, out, err = moontide()
    assert.equal(64, code)
    assert.equal("", out)
    assert.matches("usage: moontide", err)
  end)

  it("knows --help and --version", function()
    local code, out = moontide("--help")
    assert.equal(0, code)
    for _, command in ipairs(COMMANDS) do assert.matches("\n  " .. command .. " ", out) end
    code, out = moontide("--version")
    assert.equal(0, code)
    assert.matches("^moontide %d+%.%d+%.%d+\n$", out)
    assert.equal(out, select(2, moontide("version")))
  end)

  for _, command in ipairs(COMMANDS) do
    it("has a help with examples for " .. command, function()
      local code, out, err = moontide(command, "--help")
      assert.equal(0, code)
      assert.equal("", err)
      assert.matches("[Uu]sage: moontide %[?" .. command, out)
      assert.matches("examples:\n  ", out)
    end)
  end

  local wrong = {
    { { "chek" }, "unknown command \"chek\"; did you mean \"check\"?" },
    { { "run" }, "no script is named" },
    { { "run", "--nme", "x", "app.lua" }, "unknown option \"--nme\"; did you mean \"--name\"?" },
    { { "run", "--set" }, "option --set needs a value" },
    { { "run", "--set", "linger", "app.lua" }, "--set takes KEY=VALUE, not \"linger\"" },
    { { "--init=never", "app.lua" }, "--init takes auto, on or off" },
    { { "check" }, "missing argument 'script'" },
    { { "check", "--grace", "soon", "app.lua" }, "--grace: \"soon\" is not a duration" },
    { { "check", "--prestop", "5", "app.lua" }, "--prestop counts only with --grace" },
    { { "plan", "--pipeline", "middle", "app.lua" }, "must be one of 'startup', 'shutdown'" },
    { { "graph", "--format", "png", "app.lua" }, "must be one of 'mermaid', 'dot'" },
    { { "why", "a" }, "missing argument" },
    { { "healthcheck", "--url", "ftp://x" }, "is not an http:// address" },
    { { "healthcheck", "--ulr", "x" }, "unknown option \"--ulr\"; did you mean \"--url\"?" },
    { { "healthcheck", "--url" }, "option --url needs a value" },
    { { "healthcheck", "--timeout", "-1" }, "--timeout: -1 is negative" },
    { { "version", "now" }, "version takes no \"now\"" },
  }
  for _, case in ipairs(wrong) do
    it("exits 64 for: moontide " .. table.concat(case[1], " "), function()
      local code, out, err = moontide(table.unpack(case[1]))
      assert.equal(64, code)
      assert.equal("", out)
      assert.matches("moontide: ", err, 1, true)
      assert.matches(case[2], err, 1, true)
    end)
  end
end)

local SHOW = [[
local tide = require "moontide"
local config = require "moontide.config"
print(arg[0]:match("[^/]*$"), table.concat(arg, " "), ...)
print(config.get "name", config.get "shutdown.linger", config.origin "shutdown.linger")
]]

describe("run", function()
  it("gives the script what follows it", function()
    local code, out = proc.run { script = SHOW, args = { "--verbose", "x" } }
    assert.equal(0, code)
    assert.matches("^app.lua\t%-%-verbose x\t%-%-verbose\tx\napp\t3", out)
  end)

  it("is the same with and without its name, and takes settings", function()
    for _, argv in ipairs { {}, { "run" }, { "--init", "off", "run" } } do
      local code, out, err = proc.run {
        script = SHOW, argv = argv,
        flags = { "--name=shop", "--set", "shutdown.linger=7s", "--shutdown-timeout", "30" },
        env = { MOONTIDE_SHUTDOWN__LINGER = "5s" },
      }
      assert.equal(0, code, err)
      assert.matches("\nshop\t7\tcommand line %-%-set shutdown.linger", out)
    end
  end)

  it("refuses a setting that is wrong", function()
    local code, out, err = proc.run { script = SHOW, flags = { "--set", "shutdown.lingr=7s" } }
    assert.equal(78, code)
    assert.matches("command line %-%-set shutdown.lingr: unknown key .*shutdown.linger", err)
    assert.not_matches("shop", out)
  end)

  it("loads neither argparse nor another command", function()
    local code, out = proc.run { script = [[
local found = {}
for name in pairs(package.loaded) do
  if name == "argparse" or name:find "^moontide%.cli" then found[#found + 1] = name end
end
table.sort(found)
print(table.concat(found, " "))
]] }
    assert.equal(0, code)
    assert.equal("moontide.cli moontide.cli.run\n", out)
  end)
end)
