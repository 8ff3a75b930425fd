-- A store's file that cannot be used is said at the start, by its name; nothing listens then.
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"
local uv = require "luv"

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = 0 } }
local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT") }
local store = tide.http.store.sqlite(os.getenv "FILE", { busy = "200ms" })
server:post("/x", tide.http.accepted { store = store, key = "optional" }, function() return "x" end)
]]

local function refused(file, env)
  env = env or {}
  env.FILE = file
  local code, _, stderr = proc.run { script = SCRIPT, env = env }
  assert.equal(1, code)
  return stderr
end

local function sqlite3(path, sql)
  local code, out, err = proc.run {
    program = "/usr/bin/python3", manage = false,
    argv = { "-c", "import sqlite3,sys; c=sqlite3.connect(sys.argv[1], isolation_level=None); "
      .. "[c.execute(s) for s in sys.argv[2].split(';')]; c.close()", path, sql },
  }
  assert(code == 0, err)
  return out
end

describe("a store's file", function()
  it("that is no database is named", function()
    local path = proc.temp_dir() .. "/garbage.db"
    proc.write_file(path, ("no database "):rep(1000))
    local said = refused(path)
    assert.matches("store " .. path .. ": file is not a database", said, 1, true)
    assert.matches("move it away", said, 1, true)
    assert.equal(("no database "):rep(1000), proc.read_file(path)) -- as it was
  end)

  it("that is cut is named", function()
    local path = proc.temp_dir() .. "/cut.db"
    sqlite3(path, "create table a(b);insert into a values(zeroblob(100000));pragma user_version=1")
    proc.write_file(path, proc.read_file(path):sub(1, 3000))
    assert.matches("store " .. path .. ": ", refused(path), 1, true)
  end)

  it("of another program, or of a newer moontide, is left alone", function()
    local path = proc.temp_dir() .. "/other.db"
    sqlite3(path, "create table orders(id)")
    assert.matches("a database of another program", refused(path), 1, true)
    path = proc.temp_dir() .. "/newer.db"
    sqlite3(path, "pragma user_version=99")
    assert.matches("made by a newer moontide %(its schema is 99", refused(path))
  end)

  it("where none can be is named", function()
    assert.matches("store /dev/null/jobs.db: unable to open", refused "/dev/null/jobs.db", 1, true)
    assert.matches("store /nowhere/at/all.db: unable", refused "/nowhere/at/all.db", 1, true)
    assert.matches("/dev/null", refused("jobs.db", { MOONTIDE_STATE_DIR = "/dev/null/s" }), 1, true)
    assert.matches("store " .. proc.temp_dir():match "^/%w+", refused(proc.temp_dir()), 1, true)
  end)

  it("in a directory that cannot be written is named", function()
    local folder = proc.temp_dir()
    uv.fs_chmod(folder, tonumber("555", 8))
    local script = proc.temp_dir() .. "/app.lua"
    proc.write_file(script, SCRIPT)
    uv.fs_chmod(script:match "^(.*)/", tonumber("755", 8))
    local code, _, stderr = proc.run {
      program = "/usr/bin/setpriv", -- root may write anywhere
      argv = { "--reuid=65534", "--clear-groups", os.getenv "MOONTIDE", "run", script },
      env = { FILE = folder .. "/jobs.db" },
    }
    assert.equal(1, code)
    assert.matches("store " .. folder .. "/jobs.db: unable to open database file: the file or its "
      .. "directory cannot be written", stderr, 1, true)
  end)

  it("that another process has locked is named, after the time to wait", function()
    local path = proc.temp_dir() .. "/locked.db"
    local holder = proc.start {
      program = "/usr/bin/python3", manage = false,
      argv = { "-u", "-c", "import sqlite3,sys,time; c=sqlite3.connect(sys.argv[1], "
        .. "isolation_level=None); c.execute('begin exclusive'); print('locked'); "
        .. "time.sleep(60)", path },
    }
    holder:wait_stdout "locked"
    local began = loop.now()
    local said = refused(path)
    assert.matches("store " .. path .. ": database is locked: another process holds its lock",
      said, 1, true)
    assert.is_true(loop.now() - began >= 0.2)
    holder:signal "KILL"
    holder:wait()
  end)

  it("needs libsqlite3 only when it is used", function()
    local env = { MOONTIDE_LIBSQLITE3 = "libnot-there.so.7" }
    local said = refused(proc.temp_dir() .. "/jobs.db", env)
    assert.matches("libnot-there.so.7", said, 1, true)
    assert.matches("apt-get install libsqlite3-0", said, 1, true)
    local app = proc.start {
      env = env,
      script = [[
local tide = require "moontide"
tide.config { shutdown = { linger = 0 } }
local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT") }
server:post("/x", tide.http.accepted { key = "optional" }, function() return "x" end)
]],
    }
    app:wait_ready()
    assert.equal(202, http.post(app.port, "/x", "").status)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)

  it("is not touched by moontide check", function()
    local path = proc.temp_dir() .. "/jobs.db"
    local code = proc.run { argv = { "check" }, script = SCRIPT, env = { FILE = path } }
    assert.equal(0, code)
    assert.is_nil(uv.fs_stat(path))
  end)

  it("that breaks while it is used answers 503, and what is promised is kept", function()
    local path = proc.temp_dir() .. "/jobs.db"
    local app = proc.start { script = SCRIPT, env = { FILE = path } }
    app:wait_ready()
    local holder = proc.start {
      program = "/usr/bin/python3", manage = false, stdin = nil,
      argv = { "-u", "-c", "import sqlite3,sys,time; c=sqlite3.connect(sys.argv[1], "
        .. "isolation_level=None); c.execute('begin immediate'); print('locked'); "
        .. "time.sleep(60)", path },
    }
    holder:wait_stdout "locked"
    local options = { headers = { ["Idempotency-Key"] = "k" } }
    local response = http.post(app.port, "/x", "", options)
    assert.equal(503, response.status)
    assert.equal("1", response.headers["retry-after"])
    assert.is_nil(response.body:find(path, 1, true)) -- the log's, not the client's
    for _ = 1, 3 do assert.equal(503, http.post(app.port, "/x", "", options).status) end
    local said = app:find_logs { component = "http", level = "error", route = "api POST /x" }
    assert.is_true(#said >= 1 and #said < 4) -- one in 5 s, however many fail
    assert.equal(200, http.get(app.manage_port, "/health").status) -- the loop was not held up
    holder:signal "KILL"
    holder:wait()
    response = http.post(app.port, "/x", "", options)
    assert.equal(202, response.status)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)
end)
