-- Where the host listens, and what the management listener answers.
local http = require "support.http_client"
local proc = require "support.process"
local uv = require "luv"

local LISTEN = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s" }, manage = os.getenv "MANAGE" }
local server = tide.http.listen { name = "api", %s }
server:get("/", function(req) return "from " .. req.remote end)
]]

local function start(place, options)
  options = options or {}
  options.script = LISTEN:format(place) .. (options.more or "")
  options.more = nil
  return proc.start(options)
end

describe("a listener", function()
  it("with port 0 says which one it got", function()
    local app = start "port = 0"
    app:wait_ready()
    local record = app:wait_log { msg = "listening", listener = "api" }
    local port = tonumber(record.address:match ":(%d+)$")
    assert.equal(200, http.get(port, "/").status)
  end)

  it("speaks IPv6", function()
    local app = start 'host = "::1", port = tonumber(os.getenv "PORT")'
    app:wait_ready()
    assert.matches("from %[::1%]:%d+", http.get(app.port, "/", { host = "::1" }).body)
  end)

  it("on a Unix socket removes its path, but not a successor's", function()
    local dir = proc.temp_dir()
    local path = dir .. "/s"
    local app = start(('path = "%s"'):format(path))
    app:wait_ready()
    assert.equal("from unix", http.get(path, "/").body)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.is_nil(uv.fs_stat(path))

    local old = start(('path = "%s"'):format(path))
    old:wait_ready()
    uv.fs_unlink(path)
    local new = start(('path = "%s"'):format(path))
    new:wait_ready()
    old:signal "TERM"
    assert.equal(0, (old:wait()))
    assert.equal("from unix", http.get(path, "/").body)
  end)

  it("takes over a socket file that nobody answers on", function()
    local path = proc.temp_dir() .. "/s"
    local app = start(('path = "%s"'):format(path))
    app:wait_ready()
    app:signal "KILL"
    app:wait()
    assert.is_truthy(uv.fs_stat(path))
    local next_one = start(('path = "%s"'):format(path))
    next_one:wait_ready()
    assert.equal(200, http.get(path, "/").status)
  end)

  it("whose port is in use fails the boot: exit 1, naming the port", function()
    local first = start 'port = tonumber(os.getenv "PORT")'
    first:wait_ready()
    local second = start("port = " .. first.port)
    assert.equal(1, (second:wait()))
    local record = second:find_logs { level = "error" }[1]
    assert.matches("127%.0%.0%.1:" .. first.port .. ".*address already in use", record.msg)
  end)

  it("may be declared in a startup phase, but not later", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.config { shutdown = { linger = "0s" } }
      tide.startup:phase("api", function()
        tide.http.listen { port = tonumber(os.getenv "PORT") }
          :get("/", function() return "up" end)
          :get("/late", function()
            return select(2, pcall(tide.http.listen, { name = "late", port = 0 }))
          end)
      end)
      tide.run_until_terminated()]] }
    app:wait_ready()
    assert.equal("up", http.get(app.port, "/").body)
    assert.matches("before the process is ready", http.get(app.port, "/late").body)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.is_truthy(app:find_logs({ msg = "listener closed" })[1])
  end)

  it("refuses before it is time, and answers 503 when early", function()
    local more = '\ntide.startup:phase("slow", function() tide.sleep(1.5) end)'
    local late = start('port = tonumber(os.getenv "PORT")', { more = more })
    late:wait_alive()
    local _, err = http.connect(late.port)
    assert.equal("ECONNREFUSED", err)
    local early = start('port = tonumber(os.getenv "PORT"), accept = "early"', { more = more })
    early:wait_alive()
    local response = http.get(early.port, "/nope")
    assert.equal(503, response.status)
    assert.equal("1", response.headers["retry-after"])
    assert.equal("close", response.headers.connection)
    early:wait_ready()
    assert.equal(200, http.get(early.port, "/").status)
  end)
end)

describe("the management listener", function()
  it("answers probes, metrics and the state", function()
    local app = start 'port = tonumber(os.getenv "PORT")'
    app:wait_ready()
    assert.equal('{"status":"alive"}\n', http.get(app.manage_port, "/health").body)
    assert.equal(200, http.get(app.manage_port, "/health/startup").status)
    assert.matches("^text/plain", http.get(app.manage_port, "/metrics").headers["content-type"])
    assert.matches('"state":"ready"', http.get(app.manage_port, "/lifecycle").body, 1, true)
    assert.equal(404, http.post(app.manage_port, "/lifecycle/shutdown", "").status)
    assert.equal(404, http.get(app.port, "/health").status)
  end)

  it("shuts down for who has the token", function()
    local app = start('port = tonumber(os.getenv "PORT")', { env = {
      MOONTIDE_MANAGE__TOKEN = "s3cret",
    } })
    app:wait_ready()
    assert.equal(401, http.post(app.manage_port, "/lifecycle/shutdown", "").status)
    local function ask(token)
      return http.request("POST", app.manage_port, "/lifecycle/shutdown",
        { headers = { Authorization = "Bearer " .. token } })
    end
    assert.equal(401, ask("s3cres").status)
    local response = ask("s3cret")
    assert.equal(202, response.status)
    assert.equal("close", response.headers.connection)
    assert.equal(0, (app:wait()))
    assert.is_truthy(app:find_logs({ reason = "admin" })[1])
  end)

  it("lends its probes to the application's with manage = \"api\"", function()
    local app = start('port = tonumber(os.getenv "PORT")', { env = { MANAGE = "api" } })
    app:wait_ready()
    assert.equal(200, http.get(app.port, "/health/ready").status)
    assert.equal(404, http.get(app.port, "/metrics").status)
    assert.equal(200, http.get(app.manage_port, "/metrics").status)
  end)
end)
