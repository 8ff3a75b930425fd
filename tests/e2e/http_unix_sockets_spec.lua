-- Whose the file of a Unix socket is: a dead process's is replaced, a living one's never.
local http = require "support.http_client"
local proc = require "support.process"
local uv = require "luv"

local APP = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s" } }
tide.http.listen { name = "api", path = os.getenv "SOCKET" }
  :get("/", function() return os.getenv "WHO" end)
if os.getenv "SLOW" then
  tide.startup:phase("slow", function() tide.sleep(os.getenv "SLOW") end)
end
]]

local function start(path, env)
  env = env or {}
  env.SOCKET, env.WHO = path, env.WHO or "first"
  return proc.start { script = APP, env = env }
end

local function refused(app, pattern, code)
  assert.equal(code or 1, (app:wait()))
  assert.matches(pattern, app:find_logs({ level = "error" })[1].msg)
end

describe("a Unix socket", function()
  local path
  before_each(function() path = proc.temp_dir() .. "/s" end)

  it("of a living process is refused, naming it, and left alone", function()
    local app = start(path)
    app:wait_ready()
    local inode = uv.fs_stat(path).ino
    refused(start(path), ("address already in use %%(process %d %%(moontide%%) listens on it%%)")
      :format(app.pid))
    assert.equal(inode, uv.fs_stat(path).ino)
    assert.equal("first", http.get(path, "/").body)
  end)

  it("of a process that does not listen yet is refused, too", function()
    local app = start(path, { SLOW = "2s" })
    app:wait_alive()
    assert.is_truthy(uv.fs_stat(path)) -- bound, and connecting is refused
    refused(start(path), "a process that does not listen yet has it")
    app:wait_ready()
    assert.equal("first", http.get(path, "/").body)
  end)

  it("that a dead process has left is replaced", function()
    local app = start(path)
    app:wait_ready()
    app:signal "KILL"
    app:wait()
    assert.is_truthy(uv.fs_stat(path))
    local second = start(path, { WHO = "second" })
    second:wait_ready()
    assert.equal("second", http.get(path, "/").body)
    second:signal "TERM"
    assert.equal(0, (second:wait()))
    assert.is_nil(uv.fs_stat(path))
  end)

  it("that a successor has bound at its place survives the end of the first", function()
    local app = start(path)
    app:wait_ready()
    uv.fs_unlink(path)
    local second = start(path, { WHO = "second" })
    second:wait_ready()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.equal("second", http.get(path, "/").body)
  end)

  it("is not put in the place of another file", function()
    proc.write_file(path, "precious")
    refused(start(path), "there is a file of that name that is no socket")
    assert.equal("precious", proc.read_file(path))
  end)

  it("has a path of 107 bytes at most, and that much works", function()
    local dir = proc.temp_dir()
    local fits = dir .. "/" .. ("x"):rep(107 - #dir - 1)
    refused(start(fits .. "x"), "a Unix socket has 1 to 107 bytes, not 108", 78)
    assert.is_nil(uv.fs_stat(fits .. "x"))
    assert.is_nil(uv.fs_stat(fits)) -- not cut off and bound
    start(fits):wait_ready()
    assert.equal("socket", uv.fs_stat(fits).type)
  end)

  it("in a directory that is not there is refused", function()
    refused(start(path .. "/no/s"), "no such file or directory")
  end)

  it("answers all that were in its queue when it ends", function()
    local app = start(path)
    app:wait_ready()
    local conns = {}
    app:signal "STOP"
    for i = 1, 50 do
      conns[i] = assert(http.connect(path))
      conns[i]:send_request("GET", "/")
    end
    app:signal "TERM"
    app:signal "CONT"
    for i = 1, 50 do
      assert.equal("first", assert(conns[i]:read_response()).body)
      conns[i]:close()
    end
    assert.equal(0, (app:wait()))
  end)
end)
