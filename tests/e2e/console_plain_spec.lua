-- The console without a client, as with `nc -U`: lines of Lua, answers as text, a prompt. A page
-- that posts to the socket by HTTP gets nothing and is recorded.
local console = require "support.console"
local http = require "support.http_client"
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { manage = false, shutdown = { linger = 0 } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
server:get("/", function() return "served" end)
]]

local app, client

describe("a plain console", function()
  before_each(function()
    app = proc.start { script = APP }
    client = console.connect(app)
  end)
  after_each(function() client:close() end)

  it("answers a line by a value and a prompt", function()
    client:send "1 + 1\n"
    assert.equal("2\n> ", client:expect "> $")
    client:send "print 'x'\r\n"
    assert.equal("x\n> ", client:expect "> $")
    client:send "local a = 1\n"
    assert.equal("> ", client:expect "> $")
  end)

  it("asks for the rest of what is not finished", function()
    client:send "for i = 1, 2 do\n"
    assert.equal(">> ", client:expect ">> $")
    client:send "print(i)\n"
    assert.equal(">> ", client:expect ">> $")
    client:send "end\n"
    assert.equal("1\n2\n> ", client:expect "> $")
  end)

  it("runs what comes at once in order, one after the other", function()
    client:send "tide.sleep(0.2) print 'first'\nprint 'second'\n3\n"
    assert.equal("first\n> second\n> 3\n> ", client:expect "3\n> $")
  end)

  it("shows an error with its traceback once, and goes on", function()
    client:send "local x = nil + 1\n"
    local text = client:expect "> $"
    assert.matches("attempt to perform arithmetic on a nil value", text)
    local _, count = text:gsub("attempt to perform", "")
    assert.equal(1, count)
    client:send "'still here'\n"
    client:expect "still here"
  end)

  it("hears of the end of the process", function()
    client:send "1\n"
    client:expect "> $"
    app:signal "TERM"
    local text = client:expect "exit 0: .*shutdown ok[^\n]*\n"
    assert.matches("%-%- draining\n", text)
    client:wait_closed()
    assert.equal(0, (app:wait()))
  end)

  it("refuses what the policy refuses", function()
    app = proc.start { script = APP, env = { MOONTIDE_CONSOLE__POLICY = "inspect" } }
    local plain = console.connect(app)
    plain:send "os.exit(1)\n"
    assert.matches("the policy is inspect", plain:expect "> $")
    plain:close()
  end)

  it("lets no more wait than 1 MiB", function()
    client:send "tide.sleep(20)\n"
    for _ = 1, 30 do client:send(("-"):rep(50000) .. "\n") end
    client:expect "too much waits for its turn"
    client:wait_closed()
  end)

  local requests = {
    "GET / HTTP/1.1\r\nHost: x\r\n\r\nos.exit(1)\n", "POST /eval HTTP/1.0\r\n\r\nos.exit(1)\n",
    "OPTIONS * HTTP/1.1\r\n\r\n", "PUT /x\r\nos.exit(1)\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  }
  for _, text in ipairs(requests) do
    local line = text:match "^[^\r]*"
    it("closes at " .. line .. ", and records it", function()
      client:send(text)
      client:wait_closed()
      assert.equal("", client.text)
      local record = app:wait_log { component = "console", level = "warn" }
      assert.same({ "refused: it speaks HTTP", line }, { record.msg, record.text })
      assert.equal("served", http.get(app.port, "/").body)
    end)
  end

  it("closes when HTTP comes later, too", function()
    client:send "1\n"
    client:expect "> $"
    client:send "GET / HTTP/1.1\r\n\r\n"
    client:wait_closed()
  end)
end)
