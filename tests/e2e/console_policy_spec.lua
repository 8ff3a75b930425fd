-- Who may do what: the host's user and root all that the settings allow, in production only to
-- look; other users what they were given, by name; and nobody else anything.
local console = require "support.console"
local proc = require "support.process"
local uv = require "luv"

local APP = [[
local tide = require "moontide"
tide.config { name = "app", manage = false }
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
server:get("/", function() return "served" end)
]]

local app, client

local function start(env)
  app = proc.start { script = APP, env = env }
  client = console.connect(app)
end

describe("the policy", function()
  after_each(function() if client then client:close() end end)

  local inspects = {
    ["production"] = { MOONTIDE_ENV = "production" },
    ["console.policy = inspect"] = { MOONTIDE_CONSOLE__POLICY = "inspect" },
  }
  for name, env in pairs(inspects) do
    it("inspect, by " .. name .. ", looks and changes nothing", function()
      start(env)
      assert.equal("inspect", client:hello().policy)
      assert.equal("ok", client:request({ type = "status" }).status)
      assert.equal("ok", client:eval("tasks()").status)
      local refused = { "1 + 1", "tasks(os.exit())", "retry('db')", "tasks() os.exit()" }
      for _, source in ipairs(refused) do
        local reply = client:eval(source)
        assert.equal("refused", reply.status, source)
        assert.matches("the policy is inspect", reply.error.message)
      end
      local drain = client:eval "drain { reason = 'x' }"
      assert.not_equal("ok", drain.status)
      assert.matches("policy is inspect", drain.error.message)
      assert.equal("refused", client:request({ type = "drain" }).status)
      assert.equal("ok", client:request({ type = "drain", dry = true }).status)
      assert.is_true(app:is_running())
    end)
  end

  it("eval can be said, also in production", function()
    start { MOONTIDE_ENV = "production", MOONTIDE_CONSOLE__POLICY = "eval" }
    assert.equal("eval", client:hello().policy)
    assert.equal("2", client:eval("1 + 1").text)
  end)

  it("off answers nobody; a takeover can still be asked for", function()
    start { MOONTIDE_CONSOLE__POLICY = "off" }
    local reply = client:request { type = "status" }
    assert.equal("refused", reply.status)
    assert.matches("the console is off", reply.error.message)
    client:wait_closed()
    client = console.connect(app)
    client:send { type = "hello", protocol = 1 }
    assert.equal(1, client:receive().listeners)
  end)

  it("is no secret of a wrong setting", function()
    app = proc.start { script = APP, env = { MOONTIDE_CONSOLE__POLICY = "evil" } }
    assert.equal(78, (app:wait()))
    assert.matches('did you mean "eval"', app:find_logs({ level = "error" })[1].msg)
    app = proc.start { script = APP, env = { MOONTIDE_CONSOLE__UIDS = "1000:write" } }
    assert.equal(78, (app:wait()))
    assert.matches("1000:inspect", app:stderr())
  end)
end)

-- ---- other users --------------------------------------------------------------------------------

local NOBODY = 65534

-- What a program of another user gets from the socket for a text; without one, it only reads.
local function as_nobody(path, text)
  local argv = { "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "socat", "-t5" }
  argv[#argv + 1] = not text and "-u" or nil
  argv[#argv + 1] = text and "-" or "UNIX-CONNECT:" .. path
  argv[#argv + 1] = text and "UNIX-CONNECT:" .. path or "-"
  local _, out, err = proc.run {
    program = "/usr/bin/setpriv", manage = false, stdin = text, argv = argv,
  }
  return out, err
end

local function shared(uids)
  local dir = proc.temp_dir()
  uv.fs_chmod(dir, 493) -- 0755
  app = proc.start { script = APP, env = {
    MOONTIDE_CONSOLE__UIDS = uids, MOONTIDE_CONTROL__DIR = dir .. "/shared",
    MOONTIDE_LOG__LEVEL = "debug",
  } }
  return app:wait_log({ msg = "control socket" }).path
end

local HELLO = '{"id":1,"type":"hello","want":"console"}\n'
local EVAL = '{"id":2,"type":"eval","source":"1 + 1"}\n'

describe("another user", function()
  if uv.getuid() ~= 0 or not uv.fs_stat "/usr/bin/socat" then
    return pending "only root can act as another user, and socat is needed"
  end

  it("that console.uids names may look", function()
    local path = shared(tostring(NOBODY))
    assert.equal(438, uv.fs_stat(path).mode & 511) -- 0666: who it is decides
    assert.equal(457, uv.fs_stat(path:match "^(.*)/").mode & 511) -- 0711
    local out = as_nobody(path, HELLO .. EVAL)
    assert.matches('"policy":"inspect"', out)
    assert.matches('"status":"refused"', out)
  end)

  it("may run Lua when that was said, and what it runs is recorded with its user", function()
    local path = shared(NOBODY .. ":eval")
    local out = as_nobody(path, HELLO .. EVAL)
    assert.matches('"text":"2"', out)
    assert.equal(NOBODY, app:wait_log({ component = "console", msg = "eval" }).uid)
  end)

  it("may not take the sockets away", function()
    local path = shared(NOBODY .. ":eval")
    local out = as_nobody(path, '{"id":1,"type":"takeover","protocol":1,"name":"app"}\n')
    assert.matches('"why":"uid"', out)
    assert.is_true(app:is_running())
  end)

  it("that nobody named is turned away", function()
    local path = shared "12345"
    local out = as_nobody(path)
    assert.matches('"type":"refused"', out)
    assert.not_matches('"hello"', out)
    assert.equal(NOBODY, app:wait_log({ component = "control", level = "warn" }).uid)
  end)

  it("does not get to the socket of a host that names nobody", function()
    app = proc.start { script = APP }
    local path = console.socket(app)
    uv.fs_chmod(app.dir, 493)
    local out, err = as_nobody(path, HELLO)
    assert.equal("", out)
    assert.matches("Permission denied", err)
    uv.fs_chmod(path:match "^(.*)/", 457)
    local _, why = as_nobody(path, HELLO) -- the file is closed to others as well
    assert.matches("Permission denied", why)
  end)
end)
