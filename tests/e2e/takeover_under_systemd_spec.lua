-- What a service manager is told when one process follows another: which one is the service now,
-- and nothing more from the old one, whose words would be taken for the service's end.
local http = require "support.http_client"
local proc = require "support.process"
local takeover = require "support.takeover"
local uv = require "luv"

local APP = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "300ms" } }
tide.http.listen { name = "api", port = tonumber(os.getenv "PORT") }
  :get("/", function() return "served" end)
]]

-- The service manager's end: prints "PID LINE;LINE" for each datagram.
local MANAGER = [[
import os, socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
s.bind(sys.argv[1])
print("listening", flush=True)
while True:
    data, extra, _, _ = s.recvmsg(4096, 256)
    pid = next(struct.unpack("iii", d)[0] for _, kind, d in extra if kind == 2)
    print(pid, data.decode().replace("\n", ";"), flush=True)
]]

describe("under systemd", function()
  local service, manager, env

  before_each(function()
    service = takeover.service { script = APP }
    env = { NOTIFY_SOCKET = service.dir .. "/notify" }
    manager = proc.start {
      program = "/usr/bin/python3", argv = { "-c", MANAGER, env.NOTIFY_SOCKET }, manage = false,
    }
    manager:wait_stdout "listening"
  end)

  -- What a process has said, a datagram a line.
  local function said(app)
    local lines = {}
    for pid, text in manager:stdout():gmatch "(%d+) ([^\n]*)\n" do
      if tonumber(pid) == app.pid then lines[#lines + 1] = text end
    end
    return table.concat(lines, "\n")
  end

  it("the successor is the main process, and answers the watchdog", function()
    -- Of a second's interval; the successor, no process of the manager's, is not told of it.
    local old = service:start_ready { env = {
      NOTIFY_SOCKET = env.NOTIFY_SOCKET, WATCHDOG_USEC = "1000000",
    } }
    local new = service:start { flags = { "--takeover" }, env = env }
    new:wait_log { msg = "taken over" }
    assert.equal(0, (old:wait()))
    manager:wait_stdout(("(%d WATCHDOG=1)\n.*%%1\n"):format(new.pid)) -- twice: it goes on
    assert.matches("READY=1", said(old), 1, true)
    assert.matches("\nMAINPID=" .. new.pid .. "$", said(old)) -- its last words
    assert.is_nil(said(old):find("STOPPING", 1, true))
    assert.matches("READY=1", said(new), 1, true)
    new:signal "TERM"
    assert.equal(0, (new:wait()))
    assert.matches("STOPPING=1", said(new), 1, true)
  end)

  it("a takeover that fails at the last moment gives the name back", function()
    local old = service:start_ready { env = env }
    local peer = service:ask(old)
    peer:send { id = 2, type = "ready", adopted = { 1, 2 } }
    assert.equal("go", peer:receive().type)
    peer:close()
    manager:wait_stdout(("(%d MAINPID=%d)"):format(old.pid, old.pid))
  end)

  -- `place`: where the listener says that it is.
  local function hands_on(place)
    local socket = uv.new_tcp()
    assert(socket:bind("127.0.0.1", 0))
    assert(socket:listen(128, function() end))
    local port = socket:getsockname().port
    local path = service.dir .. "/app.lua"
    proc.write_file(path, (APP:gsub('port = [^}]*', place)))
    local command = ("export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=web; exec %s %s"):format(
      os.getenv "MOONTIDE", path)
    local app = proc.start {
      program = "/bin/sh", argv = { "-c", command }, inherit = socket:fileno(), dir = service.dir,
      env = { MOONTIDE_MANAGE__PORT = service.manage_port, MOONTIDE_LOG__LEVEL = "debug" },
    }
    app:wait_log { msg = "control socket" }
    for _ = 1, 2 do
      local new = service:start { flags = { "--takeover" }, script = path }
      local took = new:wait_log { msg = "socket taken over", listener = "api" }
      assert.equal("127.0.0.1:" .. port, took.address)
      new:wait_log { msg = "taken over" }
      assert.equal(0, (app:wait()))
      app = new
    end
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    -- Still in the manager's hands (here: this process's), with its queue.
    local conn = assert(http.connect(port))
    conn:close()
    socket:close()
  end

  it("hands on a socket of the manager's, which nobody ever closes for it", function()
    hands_on 'fd = "web" '
  end)

  it("hands on such a socket also where a port stands beside its name", function()
    hands_on 'fd = "web", port = 0 '
  end)
end)
