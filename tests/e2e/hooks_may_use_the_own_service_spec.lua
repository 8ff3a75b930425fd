-- Before the listener is closed, what runs in the shutdown can still ask the process itself; after
-- that, the management listener answers to the last phase.
local proc = require "support.process"

-- A client on luv for the script: get(port, path) returns "STATUS BODY" or the error's name.
local CLIENT = [[
local tide, uv = require "moontide", require "luv"
local function get(port, path)
  local answer, done, socket = "", tide.event "answer", uv.new_tcp()
  socket:connect("127.0.0.1", tonumber(port), function(err)
    if err then socket:close() return done:set(err) end
    socket:write("GET " .. path .. " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    socket:read_start(function(failed, data)
      if data then answer = answer .. data return end
      socket:close()
      done:set(failed or answer:match " (%d+)" .. " " .. answer:match "\r\n\r\n(.*)$")
    end)
  end)
  return done:wait()
end
local function say(...) io.stdout:write(table.concat({ ... }, " "), "\n") io.stdout:flush() end
]]

describe("in the shutdown", function()
  it("a phase before the listener's closing may use the own service", function()
    local app = proc.start { script = CLIENT .. [[
      tide.config { shutdown = { linger = 0 } }
      local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
      server:get("/", function() return "served while " .. tide.state() end)
      tide.shutdown:phase("deregister", { before = "service-unbind" })
      for _, phase in ipairs { "before-service-unbind", "deregister", "service-stop" } do
        tide.shutdown:task(phase, "ask", function() say(phase, get(os.getenv "PORT", "/")) end)
      end]] }
    app:wait_ready()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.equal("before-service-unbind 200 served while draining\n"
      .. "deregister 200 served while draining\nservice-stop ECONNREFUSED\n", app:stdout())
  end)

  it("every phase finds the process alive and not ready, and says so until the last", function()
    local app = proc.start { script = CLIENT .. [[
      local port = os.getenv "MOONTIDE_MANAGE__PORT"
      for _, name in ipairs(tide.shutdown.names) do
        local last = name == "actor-system-terminate"
        tide.shutdown:task(name, "ask", { after = last and "terminate" or nil }, function()
          say(name, get(port, "/health/live"):sub(1, 3), get(port, "/health/ready"):sub(1, 3))
        end)
      end
      tide.run_until_terminated()]] }
    app:wait_ready()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    local seen = 0
    for name, live, ready in app:stdout():gmatch "(%S+) (%S+) (%S+)\n" do
      if name ~= "actor-system-terminate" then
        seen = seen + 1
        assert.equal("200 503", live .. " " .. ready, name)
      else
        assert.equal("ECO ECO", live .. " " .. ready, name) -- closed by its task terminate
      end
    end
    assert.equal(12, seen, app:stdout()) -- eleven, and that of the hooks
  end)
end)
