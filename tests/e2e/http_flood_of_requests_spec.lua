-- Clients that send requests without end and wait for no answer: they wait in their own sockets.
local http = require "support.http_client"
local loop = require "support.loop"
local memory = require "support.memory"
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
local begun, running, most = 0, 0, 0
server:get("/hello", function() return "hello" end)
server:get("/slow", function(req)
  begun, running = begun + 1, running + 1
  most = math.max(most, running)
  tide.sleep(30)
  running = running - 1
end)
server:get("/begun", function() return ("%d %d"):format(begun, most) end)
]]

local ONE = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"

-- Writes until the kernel takes no more; luv queues what is left in the client.
local function flood(conn)
  conn.socket:write(ONE:rep(8 * 1024 * 1024 // #ONE))
end

describe("pipelined requests without end", function()
  it("cost less than a megabyte each connection, and nobody else anything", function()
    local app = proc.start { script = SCRIPT, env = memory.env }
    app:wait_ready()
    assert.equal(200, http.get(app.port, "/hello").status)
    local before = memory.resident(app.pid)
    local conns = {}
    for i = 1, 20 do
      conns[i] = assert(http.connect(app.port))
      flood(conns[i])
    end
    loop.wait(function()
      return http.get(app.port, "/begun").body == "20 20"
    end, 10, "the first request of each")
    loop.turn_for(0.5)
    local grown = (memory.resident(app.pid) - before) / 20
    assert.is_true(grown < 1024 * 1024, ("%.0f KiB each"):format(grown / 1024))
    local response = assert(http.get(app.port, "/begun"))
    assert.equal("20 20", response.body) -- one at a time on each
    for i = 1, 20 do conns[i]:reset() end
  end)
end)
