-- What a script has left in flight in luv (files, names, threads, writes, children) neither holds
-- up the exit nor calls Lua that is gone. Most telling under the address sanitizer.
local proc = require "support.process"

local SCRIPT = [[
local tide, uv = require "moontide", require "luv"

local function leave_things_in_flight()
  for _ = 1, 20 do
    uv.fs_stat("/", function() end)
    uv.fs_scandir("/usr/lib", function() end)
    uv.fs_open("/dev/null", "r", 0, function() end)
    uv.getaddrinfo("localhost", nil, nil, function() end)
    uv.getnameinfo({ ip = "127.0.0.1", port = 80 }, function() end)
    uv.new_work(function() return 1 end, function() end):queue()
    uv.new_timer():start(60000, 60000, function() end)
    uv.new_async(function() end):send()
    uv.fs_access("/", "R", function() end)
  end
  local fds = uv.pipe({ nonblock = true }, {})
  local full = uv.new_pipe(false)
  full:open(fds.write)
  full:write(("x"):rep(1 << 20), function() end) -- nobody reads
  full:shutdown(function() end)
  local reader = uv.new_pipe(false)
  reader:open(uv.pipe({ nonblock = true }, {}).read)
  reader:read_start(function() end)
  uv.spawn("/bin/sleep", { args = { "0.2" } }, function() end)
  local event = uv.new_fs_event()
  event:start("/tmp", {}, function() end)
  uv.new_fs_poll():start("/tmp", 10, function() end)
  uv.new_tcp():connect("127.0.0.1", 9, function() end)
end
]]

local WAYS = {
  ["from a task"] = "tide.spawn(function() leave_things_in_flight() os.exit(7) end)",
  ["from a callback"] = [[
    uv.new_timer():start(1, 0, function() leave_things_in_flight() os.exit(7) end)]],
  ["from the last hook"] = [[
    tide.shutdown:task("actor-system-terminate", "leave", leave_things_in_flight)
    os.exit(7)]],
  ["from the main chunk"] = "leave_things_in_flight()\nos.exit(7)",
}

describe("the exit with requests in flight", function()
  for name, way in pairs(WAYS) do
    it(name, function()
      local code, out, err, app = proc.run { script = SCRIPT .. way }
      assert.equal(7, code, err)
      assert.equal("", out)
      assert.is_nil(err:find("uncaught", 1, true), err)
      -- The child sleeps for 0.2 s and nobody waits for it; a busy machine takes the rest.
      assert.is_true(app.exited_at - app.started_at < 2)
    end)
  end
end)
