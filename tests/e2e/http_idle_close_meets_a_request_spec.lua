-- The moment in which a server closes an idle connection and a client sends a request on it: the
-- request is answered, or the client sees a clean end and may send it again. Never a reset, which
-- a proxy would turn into a 502.
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"
local uv = require "luv"

local IDLE_MS = 300
local SCRIPT = [[
local tide = require "moontide"
local server = tide.http.listen { port = tonumber(os.getenv "PORT"), timeouts = { idle = "300ms" } }
local begun = 0
server:post("/once", function() begun = begun + 1 return "done" end)
server:get("/begun", function() return tostring(begun) end)
]]

local REQUEST = "POST /once HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"

-- Sends the second request `offset` ms beside the moment in which the connection is closed.
local function second_request(conn, offset)
  local timer = uv.new_timer()
  timer:start(IDLE_MS + offset, 0, function()
    timer:close()
    conn.sent = true
    if not conn.closed then conn.socket:write(REQUEST) end
  end)
end

describe("a request that meets the end of an idle connection", function()
  it("is answered or finds a clean end", function()
    local app = proc.start { script = SCRIPT }
    app:wait_ready()
    local conns, answered, ended = {}, 0, 0
    for round = 0, 9 do
      for i = 1, 40 do
        local conn = assert(http.connect(app.port))
        assert.equal(200, conn:request("POST", "/once", { body = "hi" }).status)
        uv.update_time()
        second_request(conn, (i + round) % 41 - 20)
        conns[#conns + 1] = conn
      end
      loop.turn_for(0.02)
    end
    for _, conn in ipairs(conns) do
      loop.wait(function() return conn.sent end, 5, "the second request")
      local response, err = conn:read_response()
      if response then
        assert.equal("done", response.body)
        answered = answered + 1
      else
        assert.equal("eof", err)
        assert.equal("", conn.buffer)
        ended = ended + 1
      end
      conn:close()
    end
    -- Not one that ran and was not answered.
    assert.equal(tostring(#conns + answered), http.get(app.port, "/begun").body)
    assert.is_true(answered > 20, answered .. " of " .. #conns .. " answered")
    assert.is_true(ended > 20, ended .. " of " .. #conns .. " ended")
  end)
end)
