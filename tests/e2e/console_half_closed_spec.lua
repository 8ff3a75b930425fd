-- A client that has closed its direction, at each point of a conversation: it gets what it asked
-- for, its session ends, and the host waits for it without turning round and round.
local console = require "support.console"
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"
local usage = require "support.usage"

local APP = [[
local tide = require "moontide"
tide.config { manage = false }
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
server:get("/", function() return "served" end)
]]

local app, client

-- What has been said when the client closes its direction; what still comes.
local states = {
  ["before a word"] = { say = function() end },
  ["in the middle of a line"] = { say = function() client:send '{"id":1,"type":"hel' end },
  ["after hello"] = { say = function() client:hello() end },
  ["with a request that runs"] = {
    say = function() client:send { type = "eval", source = "tide.sleep(1) return 7" } end,
    answer = "7",
  },
  ["with a last line that has no end"] = {
    say = function() client:send '{"id":1,"type":"eval","source":"6"}' end, answer = "6",
  },
  ["in unfinished input"] = {
    say = function() assert.equal("incomplete", client:eval("for i = 1, 2 do").status) end,
  },
  ["in the middle of a plain line"] = { say = function() client:send "return 1 +" end },
  ["in a plain console that runs"] = {
    say = function() client:send "tide.sleep(1) return 'later'\n" end, plain = "later",
  },
  ["in unfinished plain input"] = { say = function() client:send "for i = 1, 2 do\n" end },
}

describe("a client that closes its direction", function()
  before_each(function()
    app = proc.start { script = APP }
    client = console.connect(app)
  end)
  after_each(function() client:close() end)

  for name, state in pairs(states) do
    it(name .. " is answered and let go, and costs nothing", function()
      state.say()
      client:half_close()
      -- Measured: 0.002 and less; a loop that turns takes all of it.
      assert.is_true(usage.cpu_share(app.pid, 0.5) < 0.2)
      if state.answer then assert.equal(state.answer, client:finish(1).text) end
      if state.plain then client:expect(state.plain) end
      client:wait_closed()
      assert.equal(0, console.sessions(app))
      assert.equal("served", http.get(app.port, "/").body)
    end)
  end

  it("and then goes away is seen to have gone: what it runs is cancelled", function()
    client:send { type = "eval", source = "tide.sleep(25)" }
    client:half_close()
    app:wait_log { component = "console", msg = "eval" }
    client:close()
    local record = app:wait_log({ component = "console", msg = "eval ended" }, 5)
    assert.equal("cancelled", record.status)
    loop.wait(function() return console.sessions(app) == 0 end, 5, "the end of the session")
  end)

  it("gets all of a long answer that it reads slowly", function()
    client:send { type = "eval", source = "print(('x'):rep(1000000))" }
    client:half_close()
    client:stop_reading()
    app:wait_log { component = "console", msg = "eval ended" }
    loop.turn_for(0.3) -- it does not read meanwhile
    client:read()
    assert.equal(1000001, #client:finish(1).out)
    client:wait_closed()
  end)
end)
