-- Where an evaluation cannot be paused it holds the loop: the out-of-band line says so and ends it,
-- if Lua gets to run at all; one long call of C has to come back by itself.
local console = require "support.console"
local http = require "support.http_client"
local loop = require "support.loop"
local oob = require "support.oob"
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { manage = false }
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
server:get("/", function() return "served" end)
]]

local SORT = "table.sort({ 1, 2, 3 }, function() while true do end end)"
-- A call of C of about half a second, and one of hours.
local LONG = "string.find(('a'):rep(22), ('a?'):rep(22) .. ('a'):rep(22))"
local HOURS = "string.find(('a'):rep(40), ('a?'):rep(40) .. ('a'):rep(40) .. 'b')"

local app, client, line

-- Begins an evaluation that says when it runs.
local function begin(source, timeout)
  local id = client:send { type = "eval", source = "print 'running' " .. source, timeout = timeout }
  client:receive(function(m) return m.id == id and m.type == "out" end)
  return id
end

describe("an evaluation that cannot be paused", function()
  before_each(function()
    app = proc.start { script = APP }
    client, line = console.connect(app), oob.connect(app)
  end)
  after_each(function()
    client:close()
    line:close()
  end)

  it("is named by the out-of-band line, and ends by its interrupt", function()
    local id = begin(SORT)
    line:runs "eval print"
    local where = line:where(function(w) return type(w.lua) == "table" and w.lua.at end)
    assert.matches('%[string "print', where.lua.at)
    assert.is_false(where.lua.in_c)
    assert.equal("interrupted", line:ask("interrupt").text)
    local reply = client:finish(id)
    assert.equal("cancelled", reply.status)
    assert.equal("served", http.get(app.port, "/").body)
    assert.equal("2", client:eval("1 + 1").text)
  end)

  it("ends by itself, and requests that came meanwhile are answered", function()
    local id = begin(SORT)
    local conn = assert(http.connect(app.port))
    conn:send_request("GET", "/")
    assert.equal("timeout", client:finish(id).status)
    assert.equal("served", conn:read_response().body)
  end)

  it("is interrupted behind a call of C that comes back", function()
    local id = begin("for _ = 1, 1000 do " .. LONG .. " end")
    client:send { type = "interrupt", of = id }
    local began = loop.now()
    assert.equal("cancelled", client:finish(id, 60).status)
    -- A call or two, on whatever machine; a thousand would take minutes.
    assert.is_true(loop.now() - began < 30)
  end)

  it("has timed out behind a call of C that comes back too late", function()
    local reply = client:eval(LONG .. " while true do end", { timeout = 0.05 }, 60)
    assert.equal("timeout", reply.status)
  end)

  it("can only be aborted in a call of C that does not come back", function()
    begin(HOURS)
    line:where(function(w) return type(w.lua) == "table" and w.lua.in_c end)
    local reply = line:ask "interrupt"
    assert.equal("error", reply.status)
    assert.matches("in a C call: cannot be interrupted", reply.error.message)
    assert.equal("ok", line:ask("abort").status)
    assert.equal(1, (app:wait()))
  end)
end)
