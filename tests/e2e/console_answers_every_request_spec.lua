-- Every request of the console ends with exactly one `done`: also one that is unknown, malformed,
-- or asks about something that is not there.
local console = require "support.console"
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { manage = false }
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
server:get("/", function() return "served" end)
]]

local app, client

describe("the console", function()
  before_each(function()
    app = proc.start { script = APP }
    client = console.connect(app)
  end)
  after_each(function() client:close() end)

  it("says who it is", function()
    local hello = client:hello()
    assert.equal(1, hello.protocol)
    assert.equal("app", hello.name)
    assert.equal(app.pid, hello.pid)
    assert.equal("ready", hello.state)
    assert.equal("eval", hello.policy)
    assert.equal(1, hello.session)
  end)

  it("refuses an unknown request with the nearest name", function()
    local reply = client:request { type = "statsu" }
    assert.equal("unknown", reply.status)
    assert.matches("status", reply.error.message)
    assert.equal("number", type(reply.ms))
  end)

  it("refuses a request without an id, or without a type", function()
    client:send '{"type":"status"}\n'
    assert.matches("a request has an id", client:receive().message)
    local done = client:receive()
    assert.same({ "done", "refused" }, { done.type, done.status })
    assert.is_nil(done.id)
    assert.equal("unknown", client:request({ typ = "status" }).status)
  end)

  it("says that there is nothing to interrupt", function()
    local reply = client:request { type = "interrupt", of = 99 }
    assert.equal("unknown", reply.status)
    assert.matches("no request of that id", reply.error.message)
  end)
end)

describe("status with wait", function()
  local function start(script)
    app = proc.start { script = APP .. (script or "") }
    client = console.connect(app)
  end
  after_each(function() client:close() end)

  it("answers at once when the state is there", function()
    start()
    local reply = client:request { type = "status", wait = "ready" }
    assert.equal("ok", reply.status)
    assert.equal("ready", reply.value.status.state)
  end)

  it("answers when the state comes, also the last one", function()
    start 'tide.startup:phase("db", function() tide.sleep(0.5) end)'
    assert.equal("starting", client:hello().state)
    local ready = client:send { type = "status", wait = "ready" }
    local stopped = client:send { type = "status", wait = "stopped" }
    assert.equal("ready", client:finish(ready).value.status.state)
    app:signal "TERM"
    local reply = client:finish(stopped)
    assert.equal("ok", reply.status)
    assert.equal("stopped", reply.value.status.state)
    client:event "report"
  end)

  it("says when the state is past", function()
    start()
    local reply = client:request { type = "status", wait = "starting" }
    assert.equal("error", reply.status)
    assert.matches("past starting: it is ready", reply.error.message)
  end)

  it("ends at its timeout, with the status of then", function()
    start()
    local reply = client:request { type = "status", wait = "draining", timeout = 0.1 }
    assert.equal("timeout", reply.status)
    assert.equal("ready", reply.value.status.state)
    assert.is_true(reply.ms >= 100)
  end)

  it("refuses a state that is none, and a time that is none", function()
    start()
    local reply = client:request { type = "status", wait = "redy" }
    assert.equal("error", reply.status)
    assert.matches('"ready"', reply.error.message)
    assert.is_nil(reply.error.traceback) -- a sentence: no stack of the library's own files
    reply = client:request { type = "status", wait = "draining", timeout = "soon" }
    assert.matches("timeout has to be a number", reply.error.message)
  end)

  it("can be interrupted", function()
    start()
    local id = client:send { type = "status", wait = "draining" }
    assert.equal("ok", client:request({ type = "interrupt", of = id }).status)
    assert.equal("cancelled", client:finish(id).status)
  end)
end)
