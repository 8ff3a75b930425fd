-- A socket that systemd or a parent holds: its queue belongs to the successor.
local http = require "support.http_client"
local load = require "support.load"
local proc = require "support.process"
local uv = require "luv"

local RESTARTS = tonumber(os.getenv "TIDE_RESTARTS") or 3

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s" } }
local server = tide.http.listen { name = "api", fd = "web" }
server:get("/", function() return os.getenv "WHO" end)
]]

-- To be closed before the first client comes: this process would accept it.
local function listening_socket()
  local socket = uv.new_tcp()
  assert(socket:bind("127.0.0.1", 0))
  assert(socket:listen(128, function() end))
  return socket, socket:getsockname().port
end

-- systemd's way: the variables name the process that is executed. With `gate` it holds the socket
-- and executes the host when somebody writes to that file.
local function activate(socket, who, options)
  options = options or {}
  local path = proc.temp_dir() .. "/app.lua"
  proc.write_file(path, options.script or SCRIPT)
  local wait = options.gate and ("read _ < %s; "):format(options.gate)
  if options.gate then proc.run { program = "mkfifo", argv = { options.gate }, manage = false } end
  local command = ("%sexport LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=web WHO=%s; "
    .. "exec %s run %s"):format(wait or "", who, os.getenv "MOONTIDE", path)
  return proc.start { program = "/bin/sh", argv = { "-c", command }, inherit = socket:fileno() }
end

describe("an inherited socket", function()
  it("is served, and survives its server", function()
    local socket, port = listening_socket()
    local gate = proc.temp_dir() .. "/go"
    local old = activate(socket, "old")
    local new = activate(socket, "new", { gate = gate })
    socket:close()
    old:wait_ready()
    assert.equal("old", http.get(port, "/").body)
    old:signal "TERM"
    assert.equal(0, (old:wait()))
    local conn = assert(http.connect(port)) -- not refused, though nobody serves
    conn:send_request("GET", "/")
    proc.write_file(gate, "")
    new:wait_ready()
    assert.equal("new", assert(conn:read_response()).body)
  end)

  it("hands over without a lost request", function()
    local socket, port = listening_socket()
    local old, new = activate(socket, "old"), activate(socket, "new")
    socket:close()
    old:wait_ready()
    new:wait_ready()
    local seen = {}
    for i = 1, 200 do
      if i == 100 then old:signal "TERM" end
      local response = assert(http.get(port, "/"))
      seen[response.body] = (seen[response.body] or 0) + 1
    end
    assert.equal(0, (old:wait()))
    assert.equal(200, (seen.old or 0) + seen.new)
  end)

  it("refuses nobody over restarts under load", function()
    local socket, port = listening_socket()
    local script = load.APP:gsub('port = [^}]*', 'fd = "web" ')
    local dir, apps = proc.temp_dir(), {}
    for i = 1, RESTARTS + 1 do
      apps[i] = activate(socket, "x", { script = script, gate = dir .. "/go" .. i })
    end
    socket:close()
    proc.write_file(dir .. "/go1", "")
    apps[1]:wait_ready()
    local clients = load.start { port = port, keep_alive = 4, per_request = 32, post = 4 }
    for i = 1, RESTARTS do
      apps[i]:signal "TERM"
      assert.equal(0, (apps[i]:wait()))
      proc.write_file(dir .. "/go" .. i + 1, "")
      apps[i + 1]:wait_ready()
      clients:check()
    end
    clients:finish()
  end)

  it("that no listener takes is named in a warning", function()
    local socket = listening_socket()
    local app = activate(socket, "x", { script = SCRIPT:gsub('fd = "web"', 'port = 0') })
    socket:close()
    app:wait_ready()
    assert.matches("no listener takes the inherited socket \"web\"",
      app:wait_log({ level = "warn", component = "http" }).msg, 1, true)
  end)

  it("of another name is not found: exit 1, naming those that are there", function()
    local socket = listening_socket()
    local app = activate(socket, "x", { script = SCRIPT:gsub('"web"', '"wbe"') })
    socket:close()
    assert.equal(1, (app:wait()))
    local record = app:find_logs({ level = "error" })[1]
    assert.matches("no inherited socket is named \"wbe\" (there are web)", record.msg, 1, true)
  end)
end)
