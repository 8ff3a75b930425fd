-- Sessions come and go without a trace: each ends with its client, what it started ends with it,
-- there are never more than was said, and none of them keeps the process up.
local console = require "support.console"
local loop = require "support.loop"
local proc = require "support.process"
local uv = require "luv"

local APP = [[
local tide = require "moontide"
tide.config { manage = false, shutdown = { linger = 0 } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
server:get("/", function() return "served" end)
]]

local app

local function start(env)
  app = proc.start { script = APP, env = env }
  return app
end

local function descriptors(pid)
  local n = 0
  for _ in uv.fs_scandir_next, (uv.fs_scandir(("/proc/%d/fd"):format(pid))) do n = n + 1 end
  return n
end

-- Waits until the host knows of so many, the asking one among them.
local function wait_for_sessions(client, n)
  loop.wait(function()
    return client:request({ type = "status" }).value.status.sessions == n
  end, 10, n .. " sessions")
end

describe("a session", function()
  it("beyond the most there may be is refused with a reason; one that ends makes room", function()
    start { MOONTIDE_CONSOLE__SESSIONS = "2" }
    local first, second = console.connect(app), console.connect(app)
    first:hello()
    second:hello()
    local third = console.connect(app)
    local reply = third:request { type = "hello", want = "console" }
    assert.equal("refused", reply.status)
    assert.matches("too many sessions: 2 are open", reply.error.message)
    third:wait_closed()
    app:wait_log { component = "console", level = "warn" }
    second:close()
    wait_for_sessions(first, 1)
    local fourth = console.connect(app)
    assert.equal("hello", fourth:hello().type)
    first:close()
    fourth:close()
  end)

  it("that asks nothing is ended; one that runs something is not", function()
    start { MOONTIDE_CONSOLE__IDLE_TIMEOUT = "300ms" }
    local idle, busy = console.connect(app), console.connect(app)
    idle:hello()
    assert.equal("ok", busy:eval("tide.sleep(1)").status)
    assert.matches("nothing was asked for 300ms", idle:event("closed").text)
    idle:wait_closed()
    busy:wait_closed()
  end)

  it("that ends cancels its evaluations, and their <close> runs", function()
    start()
    local client, other = console.connect(app), console.connect(app)
    client:send { type = "eval", source = [[
      local _ <close> = setmetatable({}, { __close = function() tide.log.warn "closed" end })
      tide.sleep(20)]] }
    other:hello()
    wait_for_sessions(other, 2)
    client:close()
    app:wait_log({ msg = "closed" }, 5)
    wait_for_sessions(other, 1)
    local record = app:wait_log { component = "console", msg = "eval ended" }
    assert.equal("cancelled", record.status)
    other:close()
  end)

  it("leaves nothing behind, ten thousand times", function()
    start { MOONTIDE_LOG__LEVEL = "warn" }
    local watcher, path = console.connect(app), console.socket(app)
    watcher:hello()
    loop.wait(function() -- the out-of-band line is there as well
      return uv.fs_stat((path:gsub("%.sock$", ".oob")))
    end, 10, "the out-of-band line")
    wait_for_sessions(watcher, 1)
    watcher:eval("1", { json = true }) -- what answers is loaded by the first
    local before, memory = descriptors(app.pid), nil
    local turns = tonumber(os.getenv "TIDE_SESSIONS") or 10000
    for i = 1, turns do
      local client = console.connect(path)
      -- Some say nothing, some hello, some do not wait for the answer.
      if i % 3 == 1 then client:hello() end
      if i % 3 == 2 then client:send { type = "status" } end
      client:close()
      if i == turns // 2 then -- all is loaded, and tables have their size
        memory = watcher:eval("collectgarbage() return collectgarbage 'count'", { json = true })
      end
    end
    wait_for_sessions(watcher, 1)
    loop.wait(function() return descriptors(app.pid) == before end, 10,
      ("%d descriptors, not %d"):format(before, descriptors(app.pid)))
    local after = watcher:eval("collectgarbage() return collectgarbage 'count'", { json = true })
    -- Measured: nothing. 20 KiB would be 4 bytes of each.
    assert.is_true(after.value.json - memory.value.json < 20,
      ("%s -> %s KiB"):format(memory.value.json, after.value.json))
    watcher:close()
  end)

  it("does not keep a process up that has nothing else to do", function()
    app = proc.start { script = [[
      local tide = require "moontide"
      tide.config { manage = false }
      tide.spawn(function() tide.sleep(1) end)]] }
    local client = console.connect(app)
    client:hello()
    client:send { type = "eval", source = "tide.sleep(20)" }
    client:event "report"
    assert.equal(0, (app:wait(5)))
  end)

  it("is no work that a drain waits for, and gets the states and the report", function()
    start()
    local client = console.connect(app)
    client:hello()
    local id = client:send { type = "eval", source = "tide.sleep(20)" }
    client:request { type = "help" }
    app:signal "TERM"
    assert.equal("draining", client:event("state").state)
    assert.equal("stopped", client:event("state").state)
    assert.matches("^exit 0: process%-terminate %(SIGTERM.*\nstartup ok in .*\nshutdown ok in",
      client:event("report").text)
    assert.equal("cancelled", client:finish(id).status)
    assert.equal(0, (app:wait()))
    assert.is_true(app:seconds_to_end() < 3) -- 0.1 s here; 20 would be the evaluation's
  end)
end)
