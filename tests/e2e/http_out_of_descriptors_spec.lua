-- A full table of file descriptors: who is inside is served, probes are answered, nothing spins,
-- and service is back within a second of the first descriptor that is free again.
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"
local usage = require "support.usage"

local SCRIPT = [[
local tide = require "moontide"
local uv = require "luv"
tide.config { shutdown = { linger = "0s" } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT"), timeouts = { idle = "60s" } }
local eaten = {}
server:get("/hello", function() return "hello" end)
server:get("/eat", function()
  while true do
    local fd = uv.fs_open("/dev/null", "r", 0)
    if not fd then return tostring(#eaten) end
    eaten[#eaten + 1] = fd
  end
end)
server:get("/free", function()
  for _, fd in ipairs(eaten) do uv.fs_close(fd) end
  eaten = {}
end)
]]

local DESCRIPTORS = 64

-- The limit is for the program alone.
local function start()
  local dir = proc.temp_dir()
  local wrapper = dir .. "/limited"
  proc.write_file(wrapper, ("#!/bin/sh\nulimit -n %d\nexec %s \"$@\"\n"):format(DESCRIPTORS,
    os.getenv "MOONTIDE"))
  os.execute("chmod +x " .. wrapper)
  local app = proc.start { program = wrapper, script = SCRIPT, dir = dir }
  app:wait_ready()
  return app
end

local function assert_calm(app)
  local share = usage.cpu_share(app.pid, 1)
  assert.is_true(share < 0.2, ("%.0f %% of a processor"):format(share * 100))
end

local function assert_probes_answered(app)
  for _ = 1, 3 do
    assert.equal(200, assert(http.get(app.manage_port, "/health/ready")).status)
  end
end

-- A service that is back: a client that comes now is served, if it asks again when it is told 503.
local function seconds_to_service(app)
  local from = loop.now()
  loop.wait(function()
    local response = http.get(app.port, "/hello", { timeout = 1 })
    return response and response.status == 200
  end, 5, "service")
  return loop.now() - from
end

describe("with no descriptor left", function()
  it("because of its clients, it serves those inside, and the others again", function()
    local app = start()
    local inside = assert(http.connect(app.port))
    assert.equal(200, inside:request("GET", "/hello").status)
    local crowd = {}
    for i = 1, 200 do crowd[i] = assert(http.connect(app.port)) end
    loop.turn_for(0.2)
    assert_calm(app)
    assert.equal(200, assert(inside:request("GET", "/hello")).status)
    assert_probes_answered(app)
    for i = 1, 200 do crowd[i]:close() end
    assert.is_true(seconds_to_service(app) < 1)
    assert.equal(200, assert(inside:request("GET", "/hello")).status)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)

  it("because of its script, it does the same and says so once", function()
    local app = start()
    local inside = assert(http.connect(app.port))
    local eaten = assert(inside:request("GET", "/eat"))
    assert.is_true(tonumber(eaten.body) > 10)
    local crowd = {}
    for i = 1, 20 do crowd[i] = assert(http.connect(app.port)) end
    loop.turn_for(0.2)
    assert_calm(app)
    assert.equal(200, assert(inside:request("GET", "/hello")).status)
    assert_probes_answered(app)
    assert.equal(204, assert(inside:request("GET", "/free")).status)
    assert.is_true(seconds_to_service(app) < 1)
    assert.equal(1, #app:find_logs "cannot accept: accepting pauses")
    for i = 1, 20 do crowd[i]:close() end
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)
end)
