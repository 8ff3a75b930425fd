-- Each way in which a takeover cannot be: the process that serves goes on serving and says who
-- asked and why not, the other one ends with 69 and says it, too.
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"
local takeover = require "support.takeover"
local uv = require "luv"

local APP = [[
local tide = require "moontide"
tide.config { name = os.getenv "NAME", shutdown = { linger = os.getenv "LINGER" or "0s" } }
if os.getenv "SLOW" then
  tide.startup:phase("slow", function() tide.sleep(os.getenv "SLOW") end)
end
if os.getenv "FAIL" then tide.startup:phase("db", function() error "no db" end) end
local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT") }
server:get("/", function() return "served" end)
]]

local service, old

local function serves(app)
  assert.is_true(app:is_running())
  assert.equal("served", http.get(app.port, "/").body)
  assert.equal(200, http.get(app.manage_port, "/health/ready").status)
end

-- The successor has ended with 69, saying so.
local function refused(app, pattern, plain)
  assert.equal(69, (app:wait()))
  local record = assert(app:find_logs({ level = "error" })[1], app:stderr())
  assert.matches(pattern, record.msg, 1, plain)
end

local function said(app, why)
  return app:wait_log { component = "takeover", level = "warn", why = why }
end

describe("a takeover", function()
  before_each(function() service = takeover.service { script = APP } end)

  it("with nobody there is a plain start, unless it is required", function()
    local app = service:start_ready { flags = { "--takeover" } }
    assert.is_truthy(app:find_logs({ level = "info", component = "takeover" })[1])
    serves(app)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.same({ ".lock" }, { uv.fs_scandir_next(uv.fs_scandir(service:sockets())), nil })
    refused(service:start { flags = { "--takeover=required" } },
      'no process called "app" is there to be taken over')
    refused(service:start { flags = { "--takeover=" .. app.pid } }, "is there to be taken over")
  end)

  it("by who speaks another protocol is refused", function()
    old = service:start_ready()
    local peer, reply = service:ask(old, { protocol = 99 })
    assert.equal("refused", reply.type)
    assert.equal("protocol", reply.why)
    assert.is_nil(peer:line()) -- and closed
    local record = said(old, "protocol")
    assert.equal(uv.os_getpid(), record.pid)
    serves(old)
  end)

  it("by a process of another name is refused", function()
    old = service:start_ready()
    local _, reply = service:ask(old, { name = "orders" })
    assert.equal("name", reply.why)
    said(old, "name")
    serves(old)
  end)

  it("by another script of the same name is refused; an explicit name decides", function()
    old = service:start_ready()
    local other = service.dir .. "/other/app.lua"
    uv.fs_mkdir(service.dir .. "/other", 448)
    proc.write_file(other, APP)
    refused(service:start { flags = { "--takeover" }, script = other }, "its script is")
    said(old, "script")
    serves(old)
    old:signal "TERM"
    assert.equal(0, (old:wait()))
    old = service:start_ready { env = { NAME = "orders" } }
    local new = service:start {
      flags = { "--takeover" }, script = other, env = { NAME = "orders" },
    }
    new:wait_log { msg = "taken over" }
    assert.equal(0, (old:wait()))
    serves(new)
  end)

  it("of a process that shuts down is refused", function()
    old = service:start_ready { env = { LINGER = "3s" } }
    old:signal "TERM"
    old:wait_log { to = "draining" }
    refused(service:start { flags = { "--takeover" } },
      ("process %d is draining"):format(old.pid), true)
    local _, reply = service:ask(old)
    assert.equal("draining", reply.why)
    said(old, "draining")
    assert.equal("served", http.get(old.port, "/").body)
    assert.equal(0, (old:wait()))
  end)

  it("of a process that starts is refused", function()
    old = service:start { flags = { "--takeover" }, env = { SLOW = "2s" } }
    old:wait_log { msg = "control socket" }
    refused(service:start { flags = { "--takeover" } },
      ("process %d is starting"):format(old.pid), true)
    local _, reply = service:ask(old)
    assert.equal("starting", reply.why)
    old:wait_ready()
    serves(old)
  end)

  it("is refused while another one is under way, which goes on", function()
    old = service:start_ready()
    local first = service:start { flags = { "--takeover" }, env = { SLOW = "1500ms" } }
    first:wait_log { msg = "following another process" }
    refused(service:start { flags = { "--takeover" } }, "process " .. first.pid
      .. " is taking over already", true)
    said(old, "busy")
    first:wait_log { msg = "taken over" }
    assert.equal(0, (old:wait()))
    serves(first)
  end)

  it("ends when the successor is not ready in time", function()
    old = service:start_ready()
    local peer, offer = service:ask(old, { startup = 0.1 })
    assert.equal("offer", offer.type)
    local withdrawn = peer:receive()
    assert.equal("withdrawn", withdrawn.type)
    assert.matches("it was not ready after", withdrawn.message)
    assert.is_nil(peer:line())
    old:wait_log "takeover by process .* failed: it was withdrawn"
    serves(old)
    service:follow()
    assert.equal(0, (old:wait()))
  end)

  it("whose successor fails to start leaves the old one, which says why", function()
    old = service:start_ready()
    local new = service:start { flags = { "--takeover" }, env = { FAIL = "1" } }
    assert.equal(1, (new:wait()))
    local record = old:wait_log { component = "takeover", level = "warn" }
    assert.equal(new.pid, record.pid)
    assert.matches("no db", record.why)
    serves(old)
    service:follow()
    assert.equal(0, (old:wait()))
  end)

  it("of a process that hangs is refused", function()
    old = service:start_ready()
    old:signal "STOP"
    refused(service:start { flags = { "--takeover" } }, "process " .. old.pid .. " does not answer",
      true)
    old:signal "CONT"
    serves(old)
  end)

  it("of one of two says which there are; a number decides", function()
    old = service:start_ready()
    local port = proc.free_port()
    local env = { PORT = port, MOONTIDE_MANAGE__PORT = proc.free_port() }
    local other = service:start_ready { env = env }
    refused(service:start { flags = { "--takeover" } }, ("processes %d, %d are all called"):format(
      math.min(old.pid, other.pid), math.max(old.pid, other.pid)), true)
    service:follow { flags = { "--takeover=" .. old.pid } }
    assert.equal(0, (old:wait()))
    other.port, other.manage_port = port, env.MOONTIDE_MANAGE__PORT
    serves(other)
  end)

  -- A process that answers the request with these members; nil: it ends.
  local function answering(members)
    uv.fs_mkdir(service:sockets(), 448)
    local server = uv.new_pipe(false)
    assert(server:bind(service:sockets() .. "/app-1.sock"))
    server:listen(4, function()
      local client = uv.new_pipe(false)
      server:accept(client)
      client:read_start(function(_, data)
        local id = data and data:match '"id":(%d+)'
        if data and data:find '"hello"' then
          client:write(('{"type":"hello","id":%s,"state":"ready","listeners":1}\n'):format(id))
        elseif data and members then
          assert.matches('"protocol":1', data, 1, true)
          client:write(('{"id":%s,%s}\n'):format(id, members))
        else
          client:close()
        end
      end)
    end)
    return server
  end

  for members, pattern in pairs {
    ['"type":"refused","message":"not today"'] = "it refuses: not today",
    ['"type":"offer","listeners":[{"name":"api"}]'] = "1 sockets were announced and 0 came",
    ['"type":"offer","listeners":["x"]'] = "1 sockets were announced and 0 came",
    [""] = "it ended before it answered",
  } do
    it("answered by " .. members .. " ends with 69", function()
      local server = answering(members ~= "" and members or nil)
      refused(service:start { flags = { "--takeover" } },
        "process %d+ cannot be taken over: " .. pattern)
      server:close()
    end)
  end
end)

describe("a control socket", function()
  before_each(function() service = takeover.service { script = APP } end)

  it("closes a connection that speaks HTTP, or broken JSON", function()
    old = service:start_ready()
    local peer = takeover.connect(service:socket(old))
    peer:send "GET / HTTP/1.1\r\n\r\n"
    assert.is_nil(peer:line())
    old:wait_log { component = "console", msg = "refused: it speaks HTTP", text = "GET / HTTP/1.1" }
    peer = takeover.connect(service:socket(old))
    peer:send "{no\n"
    assert.matches('"error"', peer:line())
    assert.is_nil(peer:line())
    serves(old)
  end)

  it("is for its own user alone", function()
    if uv.getuid() ~= 0 then return pending "only root can start another user's process" end
    uv.fs_mkdir(service.dir .. "/nobody", 448)
    uv.fs_chown(service.dir .. "/nobody", 65534, 65534)
    uv.fs_chmod(service.dir, 493)
    local env = { RUNTIME_DIRECTORY = service.dir .. "/nobody", PORT = service.port,
      MOONTIDE_MANAGE__PORT = service.manage_port, MOONTIDE_REPORT__KEEP = 0,
      MOONTIDE_STATE_DIR = service.dir .. "/nobody", MOONTIDE_LOG__LEVEL = "debug" }
    proc.write_file(service.dir .. "/app.lua", APP)
    old = proc.start { program = "/usr/bin/setpriv", env = env, manage = false, argv = {
      "--reuid", "65534", "--regid", "65534", "--clear-groups", os.getenv "MOONTIDE",
      service.dir .. "/app.lua" } }
    old.port, old.manage_port = service.port, service.manage_port
    if loop.try(function() return old.exited_at end, 0.5) then
      return pending "the binary is out of reach for others"
    end
    old:wait_log { msg = "control socket" }
    refused(service:start { flags = { "--takeover" }, env = env }, "belongs to user 65534, not to")
    local peer = takeover.connect(("%s/nobody/moontide/app-%d.sock"):format(service.dir, old.pid))
    peer:send { type = "hello", id = 1, protocol = 1 } -- root may look in, and take nothing
    local line = peer:receive()
    assert.equal("uid", line.why)
    local record = old:wait_log { component = "control", level = "warn" }
    assert.equal(0, record.uid)
    serves(old)
  end)

  it("is not opened where others can enter; the process serves all the same", function()
    uv.fs_mkdir(service:sockets(), 493)
    old = service:start {}
    local record = old:wait_log { component = "control", level = "warn" }
    assert.matches("its mode is 0755: others can enter it", record.msg, 1, true)
    old:wait_ready()
    serves(old)
    refused(service:start { flags = { "--takeover" } }, "others can enter it", true)
  end)

  it("is not opened with control.socket = false", function()
    old = service:start { env = { MOONTIDE_CONTROL__SOCKET = "false" } }
    old:wait_ready()
    serves(old)
    assert.is_nil(uv.fs_stat(service:sockets()))
  end)

  it("goes where control.dir says, and its path may be too long", function()
    old = service:start { env = { MOONTIDE_CONTROL__DIR = service.dir .. "/here" } }
    old:wait_log { msg = "control socket" }
    local stat = uv.fs_stat(("%s/here/app-%d.sock"):format(service.dir, old.pid))
    assert.equal(384, stat.mode & 511) -- 0600
    local long = service:start {
      env = { MOONTIDE_CONTROL__DIR = service.dir .. "/" .. ("x"):rep(100),
        PORT = proc.free_port(), MOONTIDE_MANAGE__PORT = proc.free_port() },
    }
    assert.equal(78, (long:wait()))
    assert.matches("control.dir %(environment MOONTIDE_CONTROL__DIR%).*at most 107",
      long:find_logs({ level = "error" })[1].msg)
    local derived = service:start {
      env = { RUNTIME_DIRECTORY = service.dir .. "/" .. ("x"):rep(100),
        PORT = proc.free_port(), MOONTIDE_MANAGE__PORT = proc.free_port() },
    }
    assert.matches("at most 107 bytes, this one", derived:wait_log { component = "control",
      level = "warn" }.msg, 1, true)
  end)

  it("that a dead process has left is no obstacle", function()
    old = service:start_ready()
    local path = service:socket(old)
    old:signal "KILL"
    old:wait()
    assert.is_truthy(uv.fs_stat(path))
    local app = service:start_ready { flags = { "--takeover" } }
    assert.is_nil(uv.fs_stat(path))
    serves(app)
  end)
end)

describe("--takeover", function()
  it("takes nothing else: exit 64", function()
    local code, _, err = proc.run { flags = { "--takeover=maybe" }, script = APP }
    assert.equal(64, code)
    assert.matches('takes required or the number of a process, not "maybe"', err, 1, true)
  end)
end)
