-- The program as PID 1 of a process namespace, as in a container.
local proc = require "support.process"

local function unshare_works()
  return os.execute("unshare -pf --mount-proc true 2>/dev/null") == true
end

local refused = not unshare_works() and "unshare -pf --mount-proc is refused here"

-- The program in a namespace of its own; its PID 1 is `process:init()`.
local function contain(script, flags)
  local argv = { "-pf", "--mount-proc", "--kill-child", os.getenv "MOONTIDE" }
  for _, flag in ipairs(flags or {}) do argv[#argv + 1] = flag end
  return proc.start { program = "unshare", argv = argv, script = script }
end

-- The pid, as seen from here, of what `unshare` started.
local function init_of(process)
  local file = assert(io.open(("/proc/%d/task/%d/children"):format(process.pid, process.pid)))
  local pid = file:read("n")
  file:close()
  return assert(pid, "unshare has no child")
end

-- Keeps the process up until it is told to end.
local STAY = [[
  local tide = require "moontide"
  tide.shutdown:task("service-stop", "bye", function() print("bye") end)
  tide.spawn(function()
    io.stdout:write("up\n") io.stdout:flush()
    tide.event("never"):wait()
  end)
]]

describe("as PID 1", function()
  local function it_contained(name, fn)
    it(name, function()
      if refused then return pending(refused) end
      fn()
    end)
  end

  it_contained("leaves no zombie of an orphan, and passes the exit code", function()
    local process = contain [[
      local tide = require "moontide"
      local uv = require "luv"
      tide.spawn(function()
        local pipe = io.popen("sh -c 'sleep 0.05 >/dev/null & echo $!'")
        local orphan = tonumber(pipe:read("a"))
        pipe:close()
        print("self", math.tointeger(uv.os_getpid()), math.tointeger(uv.os_getppid()))
        while uv.kill(orphan, 0) == 0 do tide.sleep("5ms") end
        print("reaped")
        os.exit(7)
      end)
    ]]
    assert.equal(7, (process:wait()))
    assert.matches("self\t2\t1\n", process:stdout())
    assert.matches("reaped", process:stdout())
  end)

  it_contained("takes no exit code from a script's own children, while it reaps orphans", function()
    local process = contain [[
      local tide, uv = require "moontide", require "luv"
      local function run(i)
        local done, child = tide.event "exit", nil
        child = uv.spawn("/bin/sh", { args = { "-c", "(sleep 0.01; exit 9) & exit " .. i } },
          function(code) child:close() done:set(code) end)
        return done:wait()
      end
      tide.spawn(function()
        local right = 0
        for i = 1, 40 do
          if run(i) == i then right = right + 1 end
        end
        print("right", right)
        os.exit(0)
      end)
    ]]
    assert.equal(0, (process:wait()))
    assert.matches("right\t40\n", process:stdout())
  end)

  it_contained("shuts down on SIGTERM to PID 1", function()
    local process = contain(STAY)
    process:wait_stdout "(up)"
    require("luv").kill(init_of(process), "sigterm")
    assert.equal(0, (process:wait()))
    assert.matches("bye", process:stdout())
    process:wait_log { reason = "process-terminate", signal = "SIGTERM" }
  end)

  it_contained("ends with 128 and the signal that ended the program", function()
    local process = contain [[
      local uv = require "luv"
      uv.kill(uv.os_getpid(), "sigkill")
    ]]
    assert.equal(128 + 9, (process:wait()))
  end)

  it_contained("is PID 1 itself when told so", function()
    local process = contain([[
      print("self", math.tointeger(require("luv").os_getpid()))
      os.exit(0)
    ]], { "run", "--init=off" })
    assert.equal(0, (process:wait()))
    assert.matches("self\t1\n", process:stdout())
  end)
end)

describe("with --init=on, elsewhere", function()
  it("forwards SIGTERM and names who sent it", function()
    local uv = require "luv"
    local process = proc.start { flags = { "run", "--init=on" }, script = STAY }
    process:wait_stdout "(up)"
    process:signal "TERM"
    assert.equal(0, (process:wait()))
    local record = process:wait_log(function(record) return record.signal == "SIGTERM" end)
    assert.equal(math.tointeger(uv.os_getpid()), math.tointeger(record.pid))
  end)
end)
