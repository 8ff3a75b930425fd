--- What is wrong is said at once, with its place, on stderr alone; exit 78 for
--- the script and its configuration, 1 for a port in use and for what fails later.
local proc = require "support.process"

local function run(script, opts)
  opts = opts or {}
  opts.script = script .. "\n"
  local app = proc.start(opts)
  local code, signal = app:wait(20)
  assert.is_nil(signal)
  return code, app:stderr(), app:stdout()
end

--- Each row: what, the script, what the message has to say.
local REFUSED = {
  { "a syntax error", "local x =\nlocal", { "app.lua:2:" } },
  { "an unknown option of a phase", [[
local tide = require "moontide"
tide.startup:phase("db", { timout = "3s" }, function() end)]],
    { "app.lua:2", "timout", "timeout" } },
  { "an option of the wrong type", [[
local tide = require "moontide"
tide.shutdown:phase("flush", { after = "service-stop", recover = "yes" })]],
    { "app.lua:2", "recover", "boolean" } },
  { "a phase that nobody defined", [[
local tide = require "moontide"
tide.shutdown:phase("flush", { after = "servce-stop" })]],
    { "app.lua:2", "servce-stop", "service-stop" } },
  { "a cycle", [[
local tide = require "moontide"
tide.shutdown:phase("one", { after = "two" })
tide.shutdown:phase("two", { after = "one" })]],
    { "cycle", "one", "two", "app.lua:2", "app.lua:3" } },
  { "a wrong duration", [[
local tide = require "moontide"
tide.startup:phase("db", { timeout = "3 parsecs" }, function() end)]],
    { "app.lua:2", "3 parsecs" } },
  { "a wrong option of a component's check", [[
local tide = require "moontide"
tide.component("db", { start = print, check = { every = "5 parsecs", print } })]],
    { "app.lua:2", "5 parsecs" } },
  { "an unknown configuration key", [[
local tide = require "moontide"
tide.config { shutdwn = { linger = "1s" } }]],
    { "app.lua:2", "shutdwn", "shutdown" } },
  { "an illegal combination", [[
local tide = require "moontide"
tide.config { shutdown = { linger = "50s", timeout = "40s" } }]],
    { "linger" } },
}

describe("a script that is wrong", function()
  for _, row in ipairs(REFUSED) do
    it("is refused for " .. row[1], function()
      local code, err, out = run(row[2])
      assert.equal(78, code, err)
      assert.equal("", out)
      for _, words in ipairs(row[3]) do
        assert.is_truthy(err:find(words, 1, true), ("%q is not in:\n%s"):format(words, err))
      end
    end)
  end

  it("does not wait for the tasks of a script that is refused", function()
    local code, err = run [[
local tide = require "moontide"
tide.shutdown:phase("flush", { after = "servce-stop" })
tide.spawn(function() while true do pcall(tide.sleep, 60) end end)
tide.sleep(0.01)]]
    assert.equal(78, code)
    assert.equal(1, select(2, err:gsub("\n", "")))
  end)

  it("starts no task of a script that is refused", function()
    local code, _, out = run [[
local tide = require "moontide"
tide.shutdown:phase("flush", { after = "servce-stop" })
tide.spawn(function() print "must not run" end)]]
    assert.equal(78, code)
    assert.equal("", out)
  end)

  it("prints nothing beside the message", function()
    local code, err = run("local x =\nlocal")
    assert.equal(78, code)
    local _, lines = err:gsub("\n", "")
    assert.equal(1, lines, err)
  end)
end)

describe("a script that is not one", function()
  local function run_path(path)
    local app = proc.start { args = { path }, manage = false }
    local code = app:wait(10)
    return code, app:stderr()
  end

  it("missing, names the file", function()
    local code, err = run_path "/nonexistent/app.lua"
    assert.equal(78, code)
    assert.is_truthy(err:find("/nonexistent/app.lua", 1, true), err)
  end)

  it("a directory", function()
    local code, err = run_path "/tmp"
    assert.equal(78, code)
    assert.is_truthy(err:find("/tmp", 1, true), err)
  end)

  it("bytecode", function()
    local path = proc.temp_dir() .. "/app.luac"
    proc.write_file(path, string.dump(function() end))
    local code, err = run_path(path)
    assert.equal(78, code)
    assert.is_truthy(err:find("app.luac", 1, true), err)
    assert.is_truthy(err:find("binary", 1, true), err)
  end)
end)

describe("a script that is legal, if odd", function()
  it("of 10 MB runs", function()
    local filler = ("-- " .. ("x"):rep(97) .. "\n"):rep(100000)
    local code, err = run(filler .. 'io.write("ran")', { manage = false })
    assert.equal(0, code, err)
  end)

  it("with bytes that are not UTF-8 runs", function()
    local code, err, out = run('io.write("\xff\xfe" == "\\xff\\xfe" and "same" or "changed")')
    assert.equal(0, code, err)
    assert.equal("same", out)
  end)

  it("that fails at run time goes through the pipeline and exits 1", function()
    local code, err, out = run [[
      local tide = require "moontide"
      tide.shutdown:on("farewell", function(reason) io.write("stopped by " .. reason.kind) end)
      error("out of cheese")]]
    assert.equal(1, code, err)
    assert.is_truthy(err:find("out of cheese", 1, true), err)
    assert.is_truthy(out:find("stopped by", 1, true), out)
  end)
end)

describe("a port in use", function()
  it("exits 1 and says which", function()
    local first = proc.start { script = [[
      local tide = require "moontide"
      tide.http.listen { port = tonumber(os.getenv "PORT") } ]] }
    first:wait_ready()
    local code, err = run(([[
      local tide = require "moontide"
      tide.http.listen { port = %d } ]]):format(first.port))
    assert.equal(1, code, err)
    assert.is_truthy(err:find(tostring(first.port), 1, true), err)
    assert.equal(1, select(2, err:gsub("\n", "")), err) -- and nothing else
  end)

  it("of the management listener, too", function()
    local first = proc.start { script = [[
      local tide = require "moontide"
      tide.run_until_terminated() ]] }
    first:wait_ready()
    local code, err = run([[require("moontide").run_until_terminated()]],
      { env = { MOONTIDE_MANAGE__PORT = tostring(first.manage_port) } })
    assert.equal(1, code, err)
    assert.is_truthy(err:find(tostring(first.manage_port), 1, true), err)
  end)
end)
