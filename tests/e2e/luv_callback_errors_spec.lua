-- An error in a callback, whatever handle or request it belongs to, is one record; the loop and
-- everything else go on, and by default the process then leaves in order.
local proc = require "support.process"

-- Each has its callback called once and fail; the error names it.
local CALLBACKS = [[
local tide, uv = require "moontide", require "luv"
local calls = {}

function calls.timer(fail) uv.new_timer():start(1, 0, fail) end
function calls.idle(fail) local h = uv.new_idle() h:start(function() h:stop() fail() end) end
function calls.check(fail) local h = uv.new_check() h:start(function() h:stop() fail() end) end
function calls.prepare(fail) local h = uv.new_prepare() h:start(function() h:stop() fail() end) end
function calls.async(fail) uv.new_async(fail):send() end
function calls.close(fail) uv.new_timer():close(fail) end
function calls.signal(fail)
  local h = uv.new_signal()
  h:start("sigusr2", function() h:stop() fail() end)
  uv.kill(uv.os_getpid(), "sigusr2")
end
function calls.fs(fail) uv.fs_stat("/", fail) end
function calls.fs_missing(fail) uv.fs_open("/nowhere/at/all", "r", 0, fail) end
function calls.work(fail) uv.new_work(function() return 1 end, fail):queue() end
function calls.getaddrinfo(fail) uv.getaddrinfo("127.0.0.1", nil, nil, fail) end
function calls.exit(fail) uv.spawn("/bin/true", {}, fail) end
function calls.connect(fail) uv.new_pipe(false):connect("/nowhere/at/all", fail) end
function calls.poll(fail)
  local h = uv.new_poll(uv.pipe({}, {}).write)
  h:start("w", function() h:stop() fail() end)
end
function calls.stream(fail)
  local path = os.getenv "MOONTIDE_STATE_DIR" .. ".sock"
  local server, client = uv.new_pipe(false), uv.new_pipe(false)
  server:bind(path)
  server:listen(1, function()
    local conn = uv.new_pipe(false)
    server:accept(conn)
    conn:read_start(function(_, data) conn:read_stop() fail() end)
    fail()
  end)
  client:connect(path, function()
    client:write("x", fail)
    client:shutdown(fail)
    fail()
  end)
end
function calls.udp(fail)
  local h = uv.new_udp()
  h:bind("127.0.0.1", 0)
  h:recv_start(function() h:recv_stop() fail() end)
  h:send("x", "127.0.0.1", h:getsockname().port, fail)
end
]]

local NAMES = { "timer", "idle", "check", "prepare", "async", "close", "signal", "fs", "fs_missing",
  "work", "getaddrinfo", "exit", "connect", "poll", "stream", "udp" }
local SEVERAL = { stream = 5, udp = 2 } -- callbacks in one call

describe("an error in a luv callback", function()
  it("of any kind is a record of its own, and the loop goes on", function()
    local app = proc.start {
      script = CALLBACKS .. [[
        tide.config { uncaught = { callback = "log" } }
        local left, all = 0, tide.event "all"
        local expected = { stream = 5, udp = 2 }
        for name, call in pairs(calls) do
          left = left + (expected[name] or 1)
          call(function()
            left = left - 1
            if left == 0 then all:set(true) end
            error("failed in " .. name)
          end)
        end
        tide.timeout("10s", function() all:wait() end)
        tide.sleep(0.05)
        print "went on"
        os.exit(7)]],
    }
    assert.equal(7, (app:wait()), app:stderr())
    assert.equal("went on\n", app:stdout())
    for _, name in ipairs(NAMES) do
      local found = app:find_logs(function(record)
        return record.level == "error" and record.msg:find("failed in " .. name .. "$")
      end)
      assert.equal(SEVERAL[name] or 1, #found, name)
      assert.matches("app.lua:", found[1].traceback)
      assert.equal("luv callback", found[1].kind)
    end
  end)

  for _, name in ipairs(NAMES) do
    it("ends the process in order by default: " .. name, function()
      local code, out, err = proc.run { script = CALLBACKS .. ([[
        tide.shutdown:on("hook", function() tide.sleep(0.01) print "hook" end)
        calls.%s(function() error("failed") end)
        tide.run_until_terminated()]]):format(name) }
      assert.equal(1, code, err)
      assert.equal("hook\n", out)
    end)
  end
end)
