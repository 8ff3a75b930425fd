-- Traces and watches over the real socket: they show what happens, at their limit, and are gone
-- with who asked for them.
local console = require "support.console"
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { shutdown = { linger = 0 } }
app = { hits = 0 }
function app.greet(name)
  app.hits = app.hits + 1
  if name == "nobody" then error "nobody is there" end
  tide.sleep(0.01)
  return "hello " .. name
end
app.original = app.greet
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
server:get("/greet/:name", function(req) return app.greet(req.params.name) end)
]]

local app, client

local function greet(name)
  return http.get(app.port, "/greet/" .. name)
end

local function is_original(other)
  return other:eval("app.greet == app.original").text == "true"
end

describe("the console", function()
  before_each(function()
    app = proc.start { script = APP }
    client = console.connect(app)
    app:wait_ready()
  end)
  after_each(function() client:close() end)

  it("shows the calls of a function, which awaits and fails as before", function()
    assert.equal("ok", client:eval("trace('app.greet', { max = 20, per = '1s' })").status)
    assert.equal("hello you", greet("you").body)
    local event = client:event "trace"
    assert.equal("app.greet", event.target)
    assert.matches("^app%.greet%(\"you\"%) = \"hello you\"  %d+%.%d ms  %(task ", event.text)
    assert.equal(500, greet("nobody").status)
    assert.matches("raised \".*nobody is there\"", client:event("trace").text)
    local record = app:wait_log(function(r) return (r.traceback or ""):find "nobody is there"
      or (r.error or ""):find "nobody is there" end)
    assert.matches("app%.lua:%d+", (record.traceback or "") .. (record.error or ""))
    client:eval "trace('app.greet', false)"
    assert.is_true(is_original(client))
  end)

  it("shows no more than the limit, and says how many more there were", function()
    client:eval "trace('app.greet', { max = 5, per = '500ms' })"
    client:eval "for i = 1, 105 do tide.spawn(app.greet, 'n' .. i) end"
    for _ = 1, 5 do
      assert.matches("^app%.greet%(\"n%d+\"%) = ", client:event("trace").text)
    end
    assert.equal("… 100 more in these 500ms", client:event("trace").text)
  end)

  it("ends the traces of a client that goes away without a word", function()
    client:eval "trace('app.greet', { max = 5 })"
    client:eval "trace('checks', { max = 5 })"
    local other = console.connect(app)
    assert.is_false(is_original(other))
    client:close()
    loop.wait(function() return is_original(other) end, 5, "the end of the trace")
    assert.equal("hello you", greet("you").body)
    other:close()
  end)

  it("shows the shutdown as it goes", function()
    client:eval "tide.shutdown:task('service-stop', 'flush', function() tide.sleep(0.05) end)"
    client:eval "trace('lifecycle', { max = 100 })"
    app:signal "TERM"
    local texts = {}
    repeat
      texts[#texts + 1] = client:event("trace").text
    until texts[#texts]:find "task service%-stop/flush ok"
    assert.matches("^state ready %-> draining: process%-terminate", texts[1])
    assert.matches("task service%-stop/flush began", table.concat(texts, "\n"))
    assert.equal(0, (app:wait()))
  end)

  it("watches an expression, and stops when it is interrupted", function()
    local id = client:send { type = "eval", source = "watch('app.hits', '50ms', 500)" }
    assert.matches("0%.00 s  0\n", client:receive(function(m) return m.type == "out" end).text)
    greet "you"
    assert.matches("s  1\n", client:receive(function(m) return m.type == "out" end).text)
    client:request { type = "interrupt", of = id }
    local reply = client:finish(id)
    assert.equal("cancelled", reply.status)
    assert.equal("", reply.out)
    assert.equal("hello you", greet("you").body)
  end)

  it("ends a watch with the session", function()
    client:send { type = "eval", source = "watch('app.hits', '50ms', 500)" }
    client:receive(function(m) return m.type == "out" end)
    client:close()
    local other = console.connect(app)
    loop.wait(function() return other:eval("#sessions()").text == "1" end, 5, "one session only")
    other:close()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)
end)
