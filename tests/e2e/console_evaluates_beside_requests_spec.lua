-- What somebody evaluates does not keep the host from serving, and ends when it is told to.
local console = require "support.console"
local corpus = require "support.corpus"
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { manage = false }
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
server:get("/", function() return "served" end)
]]

-- Milliseconds of so many requests, sorted.
local function latencies(app, count)
  local conn = assert(http.connect(app.port))
  local list = {}
  for i = 1, count do
    local response = assert(conn:request("GET", "/"))
    assert.equal(200, response.status)
    list[i] = response.took * 1000
  end
  conn:close()
  table.sort(list)
  return list
end

-- Begins an evaluation that says when it runs.
local function begin(client, source)
  local id = client:send { type = "eval", source = "print 'running' " .. source }
  client:receive(function(m) return m.id == id and m.type == "out" end)
  return id
end

local app, client

describe("beside an evaluation", function()
  before_each(function()
    app = proc.start { script = APP }
    client = console.connect(app)
  end)
  after_each(function() client:close() end)

  for name, source in pairs {
    ["that spins"] = "while true do end",
    ["that spins in coroutines"] = [[
      while true do
        coroutine.wrap(function() coroutine.wrap(function() while true do end end)() end)()
      end
    ]],
    ["that catches errors"] = "while true do pcall(function() while true do end end) end",
    ["whose tasks spin"] = "for i = 1, 3 do tide.spawn(function() while true do end end) end",
    ["that allocates"] = "while true do local t = { {}, {} } end",
  } do
    it(name .. " requests are answered within milliseconds", function()
      local id = begin(client, source)
      local list = latencies(app, 200)
      -- A pause comes after 0.25 ms at the latest, so it is 0.1 to 0.5 ms where nothing else runs.
      -- The bounds are for a machine with ten programs to each processor: it lets one that spins
      -- wait for many milliseconds. Behind the evaluation a request would take 30 s.
      assert.is_true(list[100] < 100, "median " .. list[100])
      assert.is_true(list[200] < 2000, "slowest " .. list[200])
      client:request { type = "interrupt", of = id }
      client:request { type = "interrupt", of = id }
      assert.equal("cancelled", client:finish(id).status)
    end)
  end

  it("the console itself answers", function()
    local id = begin(client, "while true do end")
    local other = console.connect(app)
    assert.equal("2", other:eval("1 + 1").text)
    assert.equal("3", client:eval("1 + 2").text)
    client:request { type = "interrupt", of = id }
    assert.equal("cancelled", client:finish(id).status)
    other:close()
  end)

  it("a drain goes on, and takes it along", function()
    begin(client, "while true do pcall(function() while true do end end) end")
    app:signal "TERM"
    local code, signal = app:wait()
    assert.same({ 0 }, { code, signal })
    -- The evaluation is not what the drain waits for.
    assert.is_true(app:seconds_to_end() < 5, app:seconds_to_end())
  end)
end)

describe("an interrupt", function()
  before_each(function()
    app = proc.start { script = APP }
    client = console.connect(app)
  end)
  after_each(function() client:close() end)

  it("ends an evaluation in less than 100 ms, and the next one runs", function()
    local list = {}
    for i = 1, 10 do
      local id = begin(client, "while true do end")
      local began = loop.now()
      client:request { type = "interrupt", of = id }
      assert.equal("cancelled", client:finish(id).status)
      list[i] = loop.now() - began
    end
    table.sort(list)
    -- It takes a millisecond; the slowest may have met a busy machine.
    assert.is_true(list[5] < 0.1, list[5])
    assert.is_true(list[10] < 2, list[10])
    assert.equal("2", client:eval("1 + 1").text)
  end)

  it("of something unknown, or that is over, says so", function()
    assert.equal("ok", client:eval("1").status)
    for _, of in ipairs { 1, 77, "x" } do
      assert.equal("unknown", client:request({ type = "interrupt", of = of }).status)
    end
  end)

  it("is followed by nothing more of the evaluation", function()
    local id = begin(client, "while true do pcall(function() while true do print 'x' end end) end")
    client:request { type = "interrupt", of = id }
    client:request { type = "interrupt", of = id }
    assert.equal("cancelled", client:finish(id).status)
    assert.equal("2", client:eval("1 + 1").text)
    for _, message in ipairs(client.messages) do assert.not_equal(id, message.id) end
  end)

  it("comes with the end of the connection", function()
    begin(client, "while true do pcall(function() while true do end end) end")
    client:close()
    client = console.connect(app)
    loop.wait(function()
      return client:eval("require('moontide.core.evaluation').live()").text == "1"
    end, 10, "the end of the evaluation")
  end)

  for _, case in ipairs(corpus.load()) do
    if case.expect == "raised at its deadline" and not case.code:find "sethook" then
      it("ends the runaway " .. case.name .. ", and the host serves meanwhile", function()
        local id = begin(client, case.code)
        assert.equal(200, http.get(app.port, "/").status)
        client:request { type = "interrupt", of = id }
        client:request { type = "interrupt", of = id }
        assert.equal("cancelled", client:finish(id).status)
        assert.equal(200, http.get(app.port, "/").status)
      end)
    end
  end
end)
