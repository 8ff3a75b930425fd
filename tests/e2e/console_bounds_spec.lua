-- What a client can make the host hold is bounded: its output, what it does not read, a line
-- without an end, requests at once. The host serves all the while, and other clients too.
local console = require "support.console"
local http = require "support.http_client"
local loop = require "support.loop"
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
  after_each(function()
    assert.equal("served", http.get(app.port, "/").body)
    client:close()
  end)

  it("leaves output out beyond a budget, and says so", function()
    local reply = client:eval("for i = 1, 3000 do print(('x'):rep(1000)) end return 'end'")
    assert.equal("ok", reply.status)
    assert.matches("output beyond 1024 KiB is left out", reply.out)
    assert.is_true(#reply.out > 1 << 20 and #reply.out < (1 << 20) + 100)
    assert.equal("3", client:eval("1 + 2").text) -- each request has a budget of its own
  end)

  it("cuts no character in two", function()
    local reply = client:eval("print(('\u{20AC}'):rep(100000))")
    assert.equal(("\u{20AC}"):rep(100000) .. "\n", reply.out)
  end)

  it("tells what is too long to be told", function()
    local reply = client:eval("return ('x'):rep(2000000)", { json = true })
    assert.is_true(#reply.text <= 65536 + 100)
    assert.is_true(reply.status == "ok" or reply.status == "error")
    for _, message in ipairs(reply.all) do
      assert.is_true(#require("cjson").encode(message) < 1 << 20)
    end
  end)

  it("waits with what it prints for a client that reads late", function()
    local ids = {}
    client:hello()
    client:stop_reading()
    for i = 1, 8 do
      ids[i] = client:send { type = "eval",
        source = "for i = 1, 1000 do print(('x'):rep(1000)) end" }
    end
    loop.try(function() return false end, 0.5)
    client:read()
    for i = 1, 8 do
      local reply = client:finish(ids[i])
      assert.same({ "ok", 1001000 }, { reply.status, #reply.out })
    end
  end)

  it("drops a client that does not read what cannot wait", function()
    local other = console.connect(app)
    client:hello()
    client:stop_reading()
    for _ = 1, 10 do
      client:send { type = "eval", source = [[
        local text = ("x"):rep(1000)
        text:gsub("x", function() print(text) end)]] }
    end
    local record = app:wait_log { component = "console", level = "warn" }
    assert.matches("session dropped: the client reads too slowly", record.msg)
    assert.equal("2", other:eval("1 + 1").text)
    assert.equal(1, other:request({ type = "status" }).value.status.sessions)
    other:close()
  end)

  it("says that a line is too long before it closes", function()
    client:hello()
    for _ = 1, 20 do client.pipe:write(("x"):rep(65536)) end
    local message = client:receive(function(m) return m.type == "error" end)
    assert.matches("a line has at most 1 MiB", message.message)
    client:wait_closed()
  end)

  it("takes a line of nearly 1 MiB", function()
    local source = "return #'" .. ("x"):rep(1000000) .. "'"
    assert.equal("1000000", client:eval(source).text)
  end)

  it("says the same to a first line, and to a plain one", function()
    for _, first in ipairs { '{"id":1', "return '" } do
      local other = console.connect(app)
      other.pipe:write(first)
      for _ = 1, 20 do other.pipe:write(("x"):rep(65536)) end
      loop.wait(function() return other.text:find "at most 1 MiB" end, 10, "the reason")
      other:wait_closed()
      other:close()
    end
  end)

  it("runs no more requests at once than it says", function()
    local ids = {}
    for i = 1, 40 do ids[i] = client:send { type = "status", wait = "stopped", timeout = 5 } end
    local reply = client:finish(ids[40])
    assert.equal("refused", reply.status)
    assert.matches("32 requests of this session are running", reply.error.message)
    for i = 1, 32 do -- which is one more, and must always be possible
      assert.equal("ok", client:request({ type = "interrupt", of = ids[i] }).status)
      assert.equal("cancelled", client:finish(ids[i]).status)
    end
    assert.equal("2", client:eval("1 + 1").text)
  end)

  it("gives an evaluation 30 s, when nothing else is asked for", function()
    local shown = client:eval("timers()").text
    local left = tonumber(shown:match "\n *([%d.]+) s +deadline")
    assert.is_true(left and left > 20 and left <= 30, shown) -- most of it is still to come
  end)
end)
