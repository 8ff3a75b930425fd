-- A Unix socket knows no reset: a client that closes has left, one that ends its half has not.
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s" } }
local server = tide.http.listen { path = os.getenv "SOCKET" }
server:get("/events/:name", { stream = true }, function(req, res)
  local name = req.params.name
  local mark <close> = setmetatable({}, { __close = function(_, err)
    tide.log.info("left", { what = name, why = err and tostring(err) or "returned" })
  end })
  local s = res:sse()
  s:send "hello"
  tide.sleep(name == "gone" and 3600 or 1)
  s:send "late"
end)
]]

describe("a client on a Unix socket", function()
  local app, path

  local function ask(name)
    local conn = assert(http.connect(path))
    conn:send_request("GET", "/events/" .. name)
    loop.wait(function() return conn.buffer:find("hello", 1, true) end, 10, "the first event")
    return conn
  end

  setup(function()
    path = proc.temp_dir() .. "/http.sock"
    app = proc.start { script = SCRIPT, env = { SOCKET = path } }
    app:wait_ready()
  end)

  it("that closes ends its stream's handler within a second", function()
    local conn = ask "gone"
    local since = loop.now()
    conn:close()
    assert.matches("aborted", app:wait_log({ msg = "left", what = "gone" }).why)
    assert.is_true(loop.now() - since < 1)
  end)

  it("that ends its half is answered; when it closes after that, it is seen, too", function()
    local conn = ask "half"
    conn:half_close()
    local response = assert(conn:read_response())
    assert.equal("event: hello\ndata: \n\nevent: late\ndata: \n\n", response.body)
    assert.equal("returned", app:wait_log({ msg = "left", what = "half" }).why)
    local other = ask "gone"
    other:half_close()
    loop.turn_for(0.1)
    local before, since = app:logs(), loop.now()
    other:close()
    assert.matches("aborted", app:wait_log({ msg = "left" }, 5, before[#before]).why)
    assert.is_true(loop.now() - since < 1)
  end)
end)
