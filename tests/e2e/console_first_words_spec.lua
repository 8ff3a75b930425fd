-- What a client says in its first moment: the session is made meanwhile, and nothing of it is lost,
-- out of order, or kept for ever.
local console = require "support.console"
local cjson = require "cjson"
local loop = require "support.loop"
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { manage = false, shutdown = { linger = 0 } }
require("moontide.control_serve").SILENCE = 0.5
tide.spawn(function() tide.sleep(3600) end)
]]

local app, client

local function line(message) return cjson.encode(message) .. "\n" end

describe("the first words of a client", function()
  setup(function() app = proc.start { script = APP } end)
  before_each(function() client = console.connect(app) end)
  after_each(function() client:close() end)
  teardown(function()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)

  it("may be all that it has to say, in one write: answered in order, then let go", function()
    local said = { line { id = 0, type = "hello", want = "console" } }
    for i = 1, 30 do
      said[#said + 1] = line { id = i, type = "eval", source = ("n = %d return n"):format(i) }
    end
    client:send(table.concat(said))
    client:half_close()
    assert.equal("ready", client:finish(0).hello.state)
    for i = 1, 16 do assert.equal(tostring(i), client:finish(i).text) end
    client:wait_closed()
    assert.equal(0, console.sessions(app))
  end)

  it("are heard without a hello as well", function()
    client:send(line { id = 1, type = "eval", source = "1 + 1" }
      .. '{"id":2,"type":"eval","source":"2 + 2"}') -- the end of the connection ends the line
    client:half_close()
    assert.equal("2", client:finish(1).text)
    assert.equal("4", client:finish(2).text)
    client:wait_closed()
  end)

  it("may be of a successor first, and of a console then", function()
    client:send(line { id = 1, type = "hello", protocol = 1 }
      .. line { id = 2, type = "eval", source = "n = 'first' return n" }
      .. line { id = 3, type = "eval", source = "n = n .. ', second' return n" })
    assert.equal("app", client:receive(function(m) return m.type == "hello" end).name)
    assert.equal("\"first\"", client:finish(2).text)
    assert.equal("\"first, second\"", client:finish(3).text)
  end)

  it("may be more requests than run at once: each has one end", function()
    local said = {}
    for i = 1, 500 do said[i] = line { id = i, type = "status" } end
    client:send(table.concat(said))
    local ends = { ok = 0, refused = 0 }
    for i = 1, 500 do
      local status = client:finish(i).status
      ends[status] = ends[status] + 1
    end
    assert.equal(500, ends.ok + ends.refused)
    assert.is_true(ends.ok >= 32)
  end)

  it("may be plain lines", function()
    client:send "x = 20\nx + 1\nx + 2"
    client:half_close()
    client:expect "21\n.*22\n"
    client:wait_closed()
  end)

  it("may be followed by a line without an end, which is said to be too long", function()
    client:send(line { id = 1, type = "eval", source = "'heard'" } .. ("x"):rep(1100000))
    assert.equal("\"heard\"", client:finish(1).text)
    client:receive(function(m) return m.type == "error" and m.message:find "1 MiB" end)
    client:wait_closed()
  end)

  it("may be no JSON: that is said, and what comes behind it is not heard", function()
    client:send("{nonsense\n" .. line { id = 1, type = "eval", source = "os.exit(3)" })
    client:receive(function(m) return m.type == "error" and m.message:find "JSON object" end)
    client:wait_closed()
    assert.equal(0, console.sessions(app))
  end)

  it("may be the last: nothing is left of who goes away at any moment", function()
    for i = 1, 100 do
      local hasty = console.connect(app)
      hasty:send(line { id = 1, type = "hello", want = "console" })
      hasty:send { type = "eval", source = "tide.sleep(30)" }
      if i % 3 == 0 then loop.turn_for(0.001 * (i % 5)) end
      hasty:close()
    end
    loop.wait(function() return console.sessions(app) == 0 end, 5, "the end of all sessions")
    assert.same({}, app:find_logs { level = "error" })
  end)

  it("have to come soon", function()
    local early = console.connect(app)
    early:hello()
    client:wait_closed(5) -- it has said nothing
    loop.turn_for(0.7)
    assert.equal("2", early:eval("1 + 1").text)
    early:close()
  end)
end)
