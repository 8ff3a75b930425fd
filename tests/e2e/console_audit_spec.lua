-- Each evaluation and each step into the pipelines is recorded before it begins and when it has
-- ended, whatever the level of the log: who, what, how it ended. A look is not.
local console = require "support.console"
local proc = require "support.process"
local uv = require "luv"

local APP = [[
local tide = require "moontide"
tide.config { manage = false, shutdown = { linger = 0 } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
]]

local app, client

local function start(env)
  app = proc.start { script = APP, env = env }
  client = console.connect(app)
end

local function sha256(text)
  local _, out = proc.run { program = "/usr/bin/sha256sum", stdin = text, manage = false }
  return out:match "^%x+"
end

-- What `text` in a log is evaluated as, or nil.
local function of(id, msg)
  return app:wait_log(function(record)
    return record.component == "console" and record.msg == msg and record.request == id
  end)
end

describe("the audit", function()
  after_each(function() client:close() end)

  it("has who, what, and how it ended", function()
    start()
    local session = client:hello().session
    local source = "return '" .. ("x"):rep(300) .. "'"
    local id = client:send { type = "eval", source = source }
    client:finish(id)
    local before, after = of(id, "eval"), of(id, "eval ended")
    assert.is_true(before.index < after.index)
    assert.same({ uv.getuid(), uv.os_getpid(), session },
      { before.uid, before.pid, before.session })
    assert.equal(proc.read_file("/proc/self/comm"):gsub("\n", ""), before.comm)
    assert.equal(source:sub(1, 200), before.text)
    assert.equal(#source, before.bytes)
    assert.equal(sha256(source), before.sha256)
    assert.matches("^%d%d%d%d%-%d%d%-%d%dT", before.time)
    assert.same({ "ok", session }, { after.status, after.session })
    assert.equal("number", type(after.ms))
  end)

  it("has what was interrupted before it began", function()
    start()
    client:hello()
    client:send('{"id":71,"type":"eval","source":"tide.sleep(20)"}\n'
      .. '{"id":72,"type":"interrupt","of":71}\n')
    assert.equal("cancelled", client:finish(71).status)
    assert.is_true(of(71, "eval").index < of(71, "eval ended").index)
  end)

  local ends = {
    { "error", "error 'no'" }, { "timeout", "tide.sleep(20)", { timeout = 0.1 } },
    { "incomplete", "for" },
  }
  for _, case in ipairs(ends) do
    it("has an end with " .. case[1], function()
      start()
      local message = { type = "eval", source = case[2] }
      for key, value in pairs(case[3] or {}) do message[key] = value end
      local id = client:send(message)
      assert.equal(case[1], client:finish(id).status)
      assert.equal(case[1], of(id, "eval ended").status)
    end)
  end

  it("has what was refused", function()
    start { MOONTIDE_ENV = "production" }
    local id = client:send { type = "eval", source = "os.exit(3)" }
    client:finish(id)
    assert.equal("os.exit(3)", of(id, "eval").text)
    assert.equal("refused", of(id, "eval ended").status)
  end)

  it("has a drain, with its reason", function()
    start()
    local id = client:send { type = "drain", reason = "deploy of 1.2" }
    client:finish(id)
    assert.equal("deploy of 1.2", of(id, "drain").text)
    assert.equal("ok", of(id, "drain ended").status)
  end)

  it("is written at every level of the log", function()
    start { MOONTIDE_LOG__LEVEL = "error" }
    local id = client:send { type = "eval", source = "1" }
    client:finish(id)
    assert.equal("info", of(id, "eval").level)
    of(id, "eval ended")
  end)

  it("has nothing of a look", function()
    start()
    client:hello()
    client:request { type = "status" }
    client:request { type = "help", name = "tasks" }
    client:request { type = "complete", source = "ti", cursor = 3 }
    client:close()
    app:signal "TERM"
    app:wait()
    assert.same({}, app:find_logs { component = "console" })
  end)
end)
