-- os.exit at the console asks for a drain with its exit code; errors of what was typed are told to
-- whoever typed it, and are no reason to shut down.
local console = require "support.console"
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { manage = false, shutdown = { linger = 0 } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
server:get("/", function() return "served" end)
tide.shutdown:on("marker", function(reason)
  tide.sleep(0.05)
  io.stdout:write("hook ", tostring(reason), "\n")
  io.stdout:flush()
end)
leave = os.exit
]]

local app, client

local function start(env)
  app = proc.start { script = APP, env = env }
  client = console.connect(app)
end

describe("os.exit at the console", function()
  after_each(function() client:close() end)

  for name, source in pairs {
    ["as it is"] = "os.exit(3) print 'went on'",
    ["in a pcall"] = "pcall(os.exit, 3) print 'went on'",
    ["by a function kept from before"] = "leave(3) print 'went on'",
    ["in a coroutine"] = "coroutine.wrap(function() os.exit(3) print 'went on' end)()",
    ["where nothing can be parked"] = [[
      table.sort({ 1, 2 }, function() os.exit(3) end) print 'went on'
    ]],
    ["in a coroutine of a spawned task"] = [[
      tide.spawn(function() coroutine.wrap(function() os.exit(3) print 'went on' end)() end)
    ]],
    ["in a spawned task"] = "tide.spawn(function() os.exit(3) print 'went on' end):join()",
  } do
    it(name .. " asks for a drain with that code", function()
      start()
      local reply = client:eval(source)
      assert.equal("ok", reply.status)
      assert.is_nil(reply.error)
      assert.is_nil(reply.err)
      assert.matches("os.exit%(3%) at the console: the process drains", reply.out)
      assert.is_nil(reply.out:find "went on")
      local code, signal = app:wait()
      assert.same({ 3 }, { code, signal })
      assert.matches("hook console", app:stdout())
    end)
  end

  it("does so also where the script's own os.exit would leave at once", function()
    start { MOONTIDE_SHUTDOWN__RUN_BY_PROCESS_EXIT = "false" }
    assert.equal("ok", client:eval("os.exit(0)").status)
    assert.equal(0, (app:wait()))
    assert.matches("hook console", app:stdout())
  end)

  it("leaves an os.exit of the application what it is", function()
    start()
    client:eval "tide.root:spawn(function() tide.sleep(0.01) os.exit(4) end)"
    assert.equal(4, (app:wait()))
    assert.matches("hook exit", app:stdout())
  end)

  it("refuses a code that is none", function()
    start()
    local reply = client:eval "os.exit('x')"
    assert.equal("error", reply.status)
    assert.matches("the code must be an integer", reply.error.message)
  end)
end)

describe("an error at the console", function()
  before_each(function() start() end)
  after_each(function() client:close() end)

  it("is told to the client alone", function()
    for _, source in ipairs {
      "error('boom')",
      "tide.spawn(function() error('boom') end)",
      "tide.spawn(function() tide.spawn(function() tide.sleep(0.01) error('boom') end) end)",
      "tide.scope(function() tide.spawn(function() error('boom') end) end)",
    } do
      local reply = client:eval(source)
      assert.matches("boom", reply.error and reply.error.message or reply.err.text)
    end
    assert.equal('"ready"', client:eval("tide.state()").text)
    assert.equal(0, #app:find_logs { msg = "uncaught error" })
  end)
end)
