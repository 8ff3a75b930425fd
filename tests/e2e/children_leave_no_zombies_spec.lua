-- Programs that a script starts: those that cannot be started, those that outlive the task that
-- started them, and those that are started while stop signals rain.
local loop = require "support.loop"
local proc = require "support.process"

-- The states ("S", "Z", ...) of a process's children.
local function children(pid)
  local file = assert(io.open(("/proc/%d/task/%d/children"):format(pid, pid)))
  local list = file:read "a"
  file:close()
  local states = {}
  for child in list:gmatch "%d+" do
    local stat = proc.read_file("/proc/" .. child .. "/stat")
    states[#states + 1] = stat and stat:match "%) (%a)" or nil
  end
  return states
end

describe("a child process", function()
  it("that cannot be started is an error and leaves nothing, a hundred times", function()
    local app = proc.start { script = [[
      local tide, uv = require "moontide", require "luv"
      local missed = 0
      for _ = 1, 100 do
        local handle, message = uv.spawn("/nowhere/at/all", {}, function() end)
        if not handle and message:find "ENOENT" then missed = missed + 1 end
      end
      print(missed, #tide.handles())
      io.stdout:flush()
      tide.run_until_terminated()]] }
    assert.equal("100", app:wait_stdout "^(%d+)\t0\n")
    assert.same({}, children(app.pid))
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)

  it("is reaped after the task that started it was given up", function()
    local app = proc.start { script = [[
      local tide, uv = require "moontide", require "luv"
      local function run(seconds)
        local done, child = tide.event "exit", nil
        child = uv.spawn("/bin/sleep", { args = { tostring(seconds) } }, function(...)
          child:close()
          done:set(true)
        end)
        local _ <close> = setmetatable({}, { __close = function()
          if not child:is_closing() then child:kill "sigkill" end
        end})
        done:wait()
      end
      tide.spawn(function()
        print(pcall(tide.timeout, "100ms", run, 60))
        io.stdout:flush()
      end)
      tide.run_until_terminated()]] }
    app:wait_stdout "^false\t"
    loop.wait(function() return #children(app.pid) == 0 end, 5, "the child to be gone")
    assert.is_true(app:is_running())
  end)

  it("can be started in a storm of stop signals", function()
    local app = proc.start { script = [[
      local tide, uv = require "moontide", require "luv"
      local codes = 0
      local function run()
        local done = tide.event "exit"
        local child
        child = uv.spawn("/bin/sh", { args = { "-c", "exit 3" } }, function(code)
          if code == 3 then codes = codes + 1 end
          child:close()
          done:set(true)
        end)
        done:wait()
      end
      tide.shutdown:task("service-stop", "children", function()
        for _ = 1, 50 do run() end
        print(codes)
        io.stdout:flush()
      end)
      tide.run_until_terminated()]] }
    app:wait_ready()
    -- Not beyond: a sanitizer's build gives the signals back before it ends.
    while app:is_running() and app:stdout() == "" do
      app:signal "TERM"
      loop.turn_for(0.0005)
    end
    assert.equal(0, (app:wait()))
    assert.equal("50\n", app:stdout())
  end)

  it("whose own child ignores SIGTERM is gone before the next phase begins", function()
    local app = proc.start { script = [[
      local tide, uv = require "moontide", require "luv"
      local gone, grandchild = tide.event "gone", nil
      local out = uv.new_pipe(false)
      local child, pid = uv.spawn("/bin/sh", {
        args = { "-c", "trap '' TERM; sleep 60 & echo $!; wait; wait" }, detached = true,
        stdio = { nil, out },
      }, function() gone:set(true) end)
      out:read_start(function(_, data)
        if not data or grandchild then return end
        grandchild = tonumber(data)
        print "up"
        io.stdout:flush()
      end)
      local function runs(id)
        local file = io.open("/proc/" .. id .. "/stat")
        local state = file and file:read("a"):match "%) (%a)"
        if file then file:close() end
        return state ~= nil and state ~= "Z"
      end
      tide.shutdown:task("service-stop", "group", { timeout = "2s" }, function()
        uv.kill(-pid, "sigterm")
        local _ <close> = setmetatable({}, { __close = function()
          uv.kill(-pid, "sigkill")
          tide.shield("1s", function()
            gone:wait()
            while runs(grandchild) do tide.sleep("1ms") end -- killed, but it takes a moment
          end)
        end})
        tide.timeout("200ms", function() gone:wait() end)
      end)
      tide.shutdown:task("before-cluster-shutdown", "look", function()
        print(runs(pid), runs(grandchild))
      end)
      tide.run_until_terminated()]] }
    app:wait_stdout "up"
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.equal("up\nfalse\tfalse\n", app:stdout())
    app:wait_log { level = "warn", task = "group" }
  end)
end)
