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
