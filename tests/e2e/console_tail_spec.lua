-- `tail` shows the log as it is written, by whichever part of the host, also below the level of the
-- log itself; and it ends when it is told to, with its client, and with the process.
local console = require "support.console"
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { manage = false, shutdown = { linger = 0 } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
server:get("/debug", function() tide.log.debug("fine", { n = 1 }) return "x" end)
server:get("/warn", function() tide.log.warn "careful" return "x" end)
server:get("/flood", function()
  for i = 1, 20000 do tide.log.info("flood", { i = i, text = ("x"):rep(100) }) end
  return "x"
end)
]]

local app, client

local function is_log(message)
  return message.type == "event" and message.event == "log"
end

-- The next record that a tail shows with this text.
local function record(from, text)
  return from:receive(function(m) return is_log(m) and m.record.msg == text end, 15, text)
end

describe("a tail", function()
  before_each(function()
    app = proc.start { script = APP }
    client = console.connect(app)
  end)
  after_each(function() client:close() end)

  it("shows what is below the log's own level, with its fields", function()
    local id = client:send { type = "tail", level = "debug" }
    record(client, "tail") -- its own
    http.get(app.port, "/debug")
    local event = record(client, "fine")
    assert.equal(id, event.id)
    assert.same({ "debug", "app", 1 }, { event.record.level, event.record.component,
      event.record.n })
    assert.is_nil(app:find_logs({ msg = "fine" })[1])
  end)

  it("shows nothing below the level that it asked for", function()
    client:send { type = "tail", level = "warn" }
    client:hello()
    http.get(app.port, "/debug")
    http.get(app.port, "/warn")
    record(client, "careful")
    for _, message in ipairs(client.messages) do assert.is_false(is_log(message)) end
  end)

  it("of two is each at its own level", function()
    local other = console.connect(app)
    client:send { type = "tail", level = "warn" }
    other:send { type = "tail", level = "debug" }
    client:hello()
    other:hello()
    http.get(app.port, "/debug")
    http.get(app.port, "/warn")
    record(other, "fine")
    record(other, "careful")
    record(client, "careful")
    other:close()
    http.get(app.port, "/warn")
    record(client, "careful")
  end)

  it("ends when it is interrupted, and nothing of it comes afterwards", function()
    local id = client:send { type = "tail" }
    client:hello()
    client:request { type = "interrupt", of = id }
    assert.equal("cancelled", client:finish(id).status)
    http.get(app.port, "/warn")
    client:hello()
    for _, message in ipairs(client.messages) do assert.is_false(is_log(message)) end
  end)

  it("of an unknown level is refused with the nearest one", function()
    local reply = client:request { type = "tail", level = "wran" }
    assert.equal("error", reply.status)
    assert.matches('"warn"', reply.error.message)
  end)

  it("misses records when it does not read, and says how many", function()
    client:send { type = "tail" }
    client:hello()
    client:stop_reading()
    http.get(app.port, "/flood")
    http.get(app.port, "/warn") -- the host serves
    client:read()
    local missed = client:event("missed").records
    assert.is_true(missed > 1000, missed)
    http.get(app.port, "/warn")
    record(client, "careful")
  end)

  it("shows the end of the process, then comes the report", function()
    client:send { type = "tail" }
    client:hello()
    app:signal "TERM"
    assert.equal(0, record(client, "stopped").record.exit_code)
    assert.matches("^exit 0: .*SIGTERM.*shutdown ok", client:event("report").text)
    client:wait_closed()
    assert.equal(0, (app:wait()))
  end)

  it("ends with its client: the log is no longer formatted for anybody", function()
    client:send { type = "tail", level = "debug" }
    client:hello()
    local watcher = console.connect(app)
    watcher:hello()
    client:close()
    loop.wait(function()
      return watcher:request({ type = "status" }).value.status.sessions == 1
    end, 10, "the end of the session")
    assert.equal("false", watcher:eval("require('moontide.core').log.enabled(0)").text)
    watcher:close()
  end)
end)
