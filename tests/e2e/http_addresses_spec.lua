-- Which clients an address lets in, several listeners at once, and what is said of an address that
-- cannot be had.
local http = require "support.http_client"
local proc = require "support.process"
local uv = require "luv"

local APP = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s" } }
local port = tonumber(os.getenv "PORT")
local function serve(opts)
  tide.http.listen(opts):get("/", function(req) return opts.name .. " " .. req.remote end)
end
%s
]]

local function start(listeners)
  return proc.start { script = APP:format(listeners) }
end

-- How a process that cannot listen ends.
local function refused(app, code)
  assert.equal(code, (app:wait()))
  return assert(app:find_logs({ level = "error" })[1], app:stderr()).msg
end

local function has_v6()
  local socket = uv.new_tcp()
  local ok = socket:bind("::1", 0)
  socket:close()
  uv.run "nowait"
  return ok
end

describe("the host", function()
  it('"::" lets in IPv4 and IPv6 clients, each under its own address', function()
    if not has_v6() then return pending "no IPv6 here" end
    local app = start 'serve { name = "api", host = "::", port = port }'
    app:wait_ready()
    assert.equal("[::]:" .. app.port, app:wait_log({ msg = "listening" }).address)
    assert.matches("^api 127%.0%.0%.1:%d+$", http.get(app.port, "/").body)
    assert.matches("^api %[::1%]:%d+$", http.get(app.port, "/", { host = "::1" }).body)
    app:signal "TERM" -- the drain asks for the handshakes of both
    assert.equal(0, (app:wait()))
  end)

  it('"::" with v6only leaves the port of IPv4 to others', function()
    if not has_v6() then return pending "no IPv6 here" end
    local app = start [[
      serve { name = "six", host = "::", port = port, v6only = true }
      serve { name = "four", host = "0.0.0.0", port = port }]]
    app:wait_ready()
    assert.matches("^six %[::1%]", http.get(app.port, "/", { host = "::1" }).body)
    assert.matches("^four 127%.0%.0%.1", http.get(app.port, "/").body)
  end)

  it('"::" without it has the port for both', function()
    if not has_v6() then return pending "no IPv6 here" end
    local app = start [[
      serve { name = "six", host = "::", port = port }
      serve { name = "four", host = "0.0.0.0", port = port }]]
    -- With SO_REUSEADDR, the kernel says so only when the second one listens.
    assert.equal(1, (app:wait()))
    assert.matches('listener "four": cannot listen on 0.0.0.0:%d+: address already in use',
      app:find_logs({ msg = "stopped" })[1].why)
  end)

  it('"::1" lets in IPv6 clients alone', function()
    if not has_v6() then return pending "no IPv6 here" end
    local app = start 'serve { name = "api", host = "::1", port = port }'
    app:wait_ready()
    assert.matches("^api %[::1%]:", http.get(app.port, "/", { host = "::1" }).body)
    assert.equal("ECONNREFUSED", select(2, http.connect(app.port)))
  end)

  it("that no interface has is named, with the reason", function()
    local app = start 'serve { name = "api", host = "192.0.2.1", port = port }'
    assert.matches('listener "api": cannot bind 192%.0%.2%.1:%d+: .*no interface of this machine',
      refused(app, 1))
    app = start 'serve { name = "api", host = "no.such.name.invalid", port = port }'
    assert.matches('listener "api": cannot resolve no%.such%.name%.invalid:', refused(app, 1))
  end)
end)

describe("several listeners", function()
  it("on ports and paths serve at once, and end together", function()
    local path = proc.temp_dir() .. "/s"
    local app = start(([[
      serve { name = "one", port = port }
      serve { name = "two", port = 0 }
      serve { name = "three", path = "%s" }]]):format(path))
    app:wait_ready()
    local two = app:wait_log({ msg = "listening", listener = "two" }).address:match ":(%d+)$"
    assert.matches("^one ", http.get(app.port, "/").body)
    assert.matches("^two ", http.get(tonumber(two), "/").body)
    assert.equal("three unix", http.get(path, "/").body)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.equal(3, #app:find_logs { msg = "listener closed" })
  end)

  it("need a name each", function()
    local app = start 'serve { name = "a", port = 0 } serve { name = "a", port = 0 }'
    assert.matches('a listener named "a" is declared already', refused(app, 78), 1, true)
  end)
end)

describe("options that do not go together", function()
  for what, listener in pairs {
    ["v6only is for an IPv6 host"] = 'serve { name = "a", port = 0, v6only = true }',
    ["reuseport is for a port"] = 'serve { name = "a", path = "/tmp/x", reuseport = true }',
    ["takes traffic only from ready on"] =
      'serve { name = "a", port = 0, reuseport = true, accept = "early" }',
    ['did you mean "v6only"'] = 'serve { name = "a", port = 0, host = "::", v6_only = true }',
  } do
    it("are refused at once: " .. what, function()
      assert.matches(what, refused(start(listener), 78), 1, true)
    end)
  end
end)
