-- A new version of a script may listen elsewhere: what both have is handed over, what is new is
-- bound, what is gone is drained by the old process.
local http = require "support.http_client"
local load = require "support.load"
local proc = require "support.process"
local takeover = require "support.takeover"
local uv = require "luv"

local APP = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s" }, name = "app" }
local port = tonumber(os.getenv "PORT")
local function serve(opts)
  tide.http.listen(opts)
    :get("/", function() return opts.name end)
    :get("/echo/:id", function(req) return req.params.id end)
    :post("/echo/:id", function(req) return req:body() end)
end
%s
]]

local function script(listeners)
  return APP:format(listeners)
end

local API = 'serve { name = "api", port = port }\n'

local function adopted(app)
  local names = {}
  for _, record in ipairs(app:find_logs { msg = "socket taken over" }) do
    names[#names + 1] = record.listener
  end
  table.sort(names)
  return table.concat(names, ",")
end

describe("a takeover by a script", function()
  local service, old, other

  local function begin(listeners)
    other = proc.free_port()
    service = takeover.service { script = script(listeners) }
    old = service:start_ready { env = { OTHER = other } }
  end

  local function follow(listeners)
    local new = service:follow {
      script = script(listeners), flags = { "--takeover" }, env = { OTHER = other },
    }
    assert.equal(0, (old:wait()))
    return new
  end

  it("with one listener more binds it", function()
    begin(API)
    local new = follow(API .. 'serve { name = "admin", port = tonumber(os.getenv "OTHER") }')
    assert.equal("api,manage", adopted(new))
    assert.equal("admin", http.get(other, "/").body)
    assert.equal("api", http.get(service.port, "/").body)
  end)

  it("with one listener less loses none of its clients", function()
    begin(API .. 'serve { name = "admin", port = tonumber(os.getenv "OTHER") }')
    -- Refused where there is no listener any more, they go on at the other one.
    local clients = load.start {
      ports = { other, service.port }, per_request = 8, retry_refused = true,
    }
    local new = follow(API)
    assert.equal("api,manage", adopted(new))
    local record = new:find_logs({ listeners = "admin (127.0.0.1:" .. other .. ")" })[1]
    assert.is_truthy(record)
    assert.equal("ECONNREFUSED", select(2, http.connect(other)))
    assert.is_true(clients:finish().per_request.refused > 0)
    assert.equal("api", http.get(service.port, "/").body)
  end)

  it("that calls a listener otherwise has its socket by the address", function()
    begin(API)
    local new = follow 'serve { name = "public", port = port }'
    assert.equal("manage,public", adopted(new))
    assert.equal("public", http.get(service.port, "/").body)
  end)

  it("that listens on another port under the name binds that one", function()
    begin(API)
    local new = follow 'serve { name = "api", port = tonumber(os.getenv "OTHER") }'
    assert.equal("manage", adopted(new))
    assert.equal("api", http.get(other, "/").body)
    assert.equal("ECONNREFUSED", select(2, http.connect(service.port)))
  end)

  it("that wants a port which somebody has fails, and the old one serves on", function()
    begin(API)
    local new = service:start {
      flags = { "--takeover" }, script = script(API .. ('serve { name = "b", port = %d }'):format(
        old.manage_port)),
    }
    assert.equal(1, (new:wait()))
    assert.is_truthy(new:find_logs("address already in use")[1])
    old:wait_log { component = "takeover", level = "warn" }
    assert.equal("api", http.get(service.port, "/").body)
  end)

  it("that takes any port keeps the one that there was", function()
    begin 'serve { name = "api", port = 0 }'
    local address = old:wait_log({ msg = "listening" }).address
    local new = follow 'serve { name = "api", port = 0 }'
    assert.equal(address, new:wait_log({ msg = "listening" }).address)
    assert.equal("api", http.get(tonumber(address:match ":(%d+)$"), "/").body)
  end)

  it("without a management listener has the old one close it", function()
    begin(API)
    local new = service:follow {
      script = script(API), flags = { "--takeover", "--set", "manage=false" },
    }
    assert.equal(0, (old:wait()))
    assert.equal("api", adopted(new))
    assert.equal("ECONNREFUSED", select(2, http.connect(service.manage_port)))
  end)

  it("hands on a Unix socket, whose last owner removes the file", function()
    local path = proc.temp_dir() .. "/s"
    local listener = ('serve { name = "local", path = "%s" }'):format(path)
    begin(listener)
    local inode = uv.fs_stat(path).ino
    for _ = 1, 2 do
      old = follow(listener)
      assert.equal("local", http.get(path, "/").body)
      assert.equal(inode, uv.fs_stat(path).ino)
    end
    old:signal "TERM"
    assert.equal(0, (old:wait()))
    assert.is_nil(uv.fs_stat(path))
  end)

  it("makes a Unix socket anew whose file somebody has removed", function()
    local path = proc.temp_dir() .. "/s"
    local listener = ('serve { name = "local", path = "%s" }'):format(path)
    begin(listener)
    uv.fs_unlink(path)
    local new = follow(listener)
    assert.equal("manage", adopted(new))
    assert.equal("local", http.get(path, "/").body)
  end)

  it("for which a listener of a startup phase is as good", function()
    begin(API)
    local new = follow(('tide.startup:phase("late", function() %s end)'):format(API))
    assert.equal("api,manage", adopted(new))
    assert.equal("api", http.get(service.port, "/").body)
  end)

  it("that listens early or in the service profile still waits for its turn", function()
    begin(API)
    local new = service:start { flags = { "--takeover" }, script = script([[
      tide.profiles.service()
      tide.startup:task("ready", "slow", function() tide.sleep "1s" end)
      serve { name = "api", port = port, accept = "early" }]]) }
    new:wait_log { msg = "following another process" }
    while #new:find_logs { msg = "taken over" } == 0 do
      local response = assert(http.get(service.port, "/")) -- never the 503 of one that starts
      assert.equal(200, response.status)
    end
    assert.equal(0, (old:wait()))
  end)
end)
