-- Where the log goes and what it looks like, by the configuration.
local json = require "moontide.json"
local proc = require "support.process"

local APP = [[
  local tide = require "moontide"
  tide.log.debug("a detail")
  tide.log.info("hello there", { n = 1, text = "two words" })
  tide.spawn(function()
    io.stdout:write("up\n") io.stdout:flush()
    tide.event("never"):wait()
  end)
  tide.shutdown:task("service-stop", "bye", function() tide.log.info("last words") end)
]]

local function lines(text)
  local list = {}
  for line in text:gmatch("([^\n]*)\n") do list[#list + 1] = line end
  return list
end

describe("the log", function()
  it("is JSON when nobody reads it on a terminal, one object a line", function()
    local process = proc.start { script = APP }
    process:wait_stdout "(up)"
    process:signal "TERM"
    assert.equal(0, (process:wait()))
    for _, line in ipairs(lines(process:stderr())) do
      local record = assert(json.decode(line))
      assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$", record.time)
      assert.is_string(record.level)
      assert.is_string(record.component)
      assert.is_string(record.msg)
    end
    process:wait_log { component = "app", msg = "hello there", n = 1, text = "two words" }
    assert.same({}, process:find_logs { msg = "a detail" })
  end)

  it("shows what a script says before its main chunk blocks", function()
    local process = proc.start { script = [[
      local tide = require "moontide"
      tide.log.info("connecting")
      os.execute("exec sleep 5")
    ]] }
    process:wait_log({ msg = "connecting" }, 3)
    process:signal "KILL"
  end)

  it("is logfmt, and says more, when told so", function()
    local process = proc.start {
      script = APP, env = { MOONTIDE_LOG__FORMAT = "logfmt", MOONTIDE_LOG__LEVEL = "debug" },
    }
    process:wait_stdout "(up)"
    process:signal "TERM"
    assert.equal(0, (process:wait()))
    assert.matches('level=debug component=app msg="a detail"\n', process:stderr())
    assert.matches('level=info component=app msg="hello there" n=1 text="two words"\n',
      process:stderr())
    assert.is_nil(process:stderr():find("{", 1, true))
  end)

  it("goes to a file, and to a new one of that name after SIGUSR1", function()
    local dir = proc.temp_dir()
    local path = dir .. "/app.log"
    local process = proc.start { script = APP, env = { MOONTIDE_LOG__FILE = path } }
    process:wait_stdout "(up)"
    local loop = require "support.loop"
    loop.wait(function() return (proc.read_file(path) or ""):find('"ready"') end, 10,
      "the log file")
    assert(os.rename(path, path .. ".1"))
    process:signal "USR1"
    loop.wait(function() return proc.read_file(path) end, 10, "the new log file")
    process:signal "TERM"
    assert.equal(0, (process:wait()))
    assert.matches('"last words"', proc.read_file(path))
    assert.is_nil(proc.read_file(path .. ".1"):find("last words"))
    assert.is_nil(process:stderr():find("last words"))
  end)

  it("stays on standard error when its file cannot be opened, and says so", function()
    local process = proc.start { script = APP, env = { MOONTIDE_LOG__FILE = "/no/such/place" } }
    process:wait_stdout "(up)"
    process:wait_log "log.file /no/such/place: it cannot be opened for writing: No such file"
    process:signal "TERM"
    assert.equal(0, (process:wait()))
  end)
end)

describe("at the exit the log", function()
  local FLOOD = [[
    local tide = require "moontide"
    tide.config { log = { close_timeout = "300ms" } }
    tide.spawn(function()
      for i = 1, 3000 do tide.log.info("line", { i = i, padding = ("x"):rep(100) }) end
      io.stdout:write("up\n") io.stdout:flush()
      tide.event("never"):wait()
    end)
  ]]

  it("does not hold up the process when nobody reads", function()
    local process = proc.start { script = FLOOD, hold_stderr = true }
    process:wait_stdout "(up)"
    process:signal "TERM"
    assert.equal(0, (process:wait(10)))
    -- Its own 0.3 s and what the machine is busy with.
    assert.is_true(process:seconds_to_end() < 3)
  end)

  it("arrives completely when somebody reads late", function()
    local process = proc.start {
      script = FLOOD, hold_stderr = true, env = { MOONTIDE_LOG__CLOSE_TIMEOUT = "10s" },
    }
    process:wait_stdout "(up)"
    process:signal "TERM"
    process:read_stderr()
    assert.equal(0, (process:wait()))
    assert.equal(3000, #process:find_logs { component = "app", msg = "line" })
    local last = process:logs()[#process:logs()]
    assert.equal("stopped", last.msg)
  end)
end)
