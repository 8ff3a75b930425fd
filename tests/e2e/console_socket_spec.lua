-- The console's socket: when it is there, for whom, and what stands in its way.
local console = require "support.console"
local loop = require "support.loop"
local proc = require "support.process"
local uv = require "luv"

local LISTENS = [[
local tide = require "moontide"
tide.config { manage = false, shutdown = { linger = 0 } }
tide.http.listen { port = tonumber(os.getenv "PORT") }
]]

-- What a session says of the process that it reached.
local function hello_of(app)
  local client = console.connect(app)
  local hello = client:hello()
  client:close()
  return hello
end

describe("the console's socket", function()
  it("is its user's alone, whatever the umask", function()
    local app = proc.start { program = "/bin/sh", argv = { "-c", 'umask 0; exec "$0" "$@"',
      os.getenv "MOONTIDE" }, script = LISTENS }
    local path = console.socket(app)
    assert.equal(384, uv.fs_stat(path).mode & 511) -- 0600
    assert.equal(448, uv.fs_stat(path:match "^(.*)/").mode & 511) -- 0700
    assert.equal("ready", hello_of(app).state)
  end)

  it("is there without a listener, too, as long as something runs", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.config { manage = false }
      tide.spawn(function() tide.sleep(20) end)
    ]] }
    assert.equal("ready", hello_of(app).state)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    local left = uv.fs_scandir(app.dir .. "/moontide")
    assert.same({ ".lock" }, { uv.fs_scandir_next(left), uv.fs_scandir_next(left) })
  end)

  it("is there in a start that takes long", function()
    local app = proc.start { script = LISTENS .. [[
      tide.startup:phase("db", function() tide.sleep(20) end)
    ]] }
    local client = console.connect(app)
    assert.equal("starting", client:hello().state)
    assert.matches("db", client:eval("phases()").text)
    client:send { type = "drain", reason = "it hangs" }
    client:event "report"
    client:close()
    app:wait()
  end)

  it("is there in a main chunk that takes long, and moves to the name that it says", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.sleep(0.5)
      tide.config { name = "orders", manage = false }
      tide.spawn(function() tide.sleep(20) end)
    ]] }
    local first = console.socket(app)
    assert.equal(app.dir .. "/moontide/app-" .. app.pid .. ".sock", first)
    local client = console.connect(first)
    assert.equal("starting", client:hello().state)
    local path = app.dir .. "/moontide/orders-" .. app.pid .. ".sock"
    loop.wait(function() return uv.fs_stat(path) end, 10, "the socket of that name")
    assert.equal("orders", console.connect(path):hello().name)
    assert.is_nil(uv.fs_stat(first))
    assert.equal("ready", client:request({ type = "status" }).value.status.state) -- it goes on
    client:close()
  end)

  it("is none of a script that is over at once", function()
    local app = proc.start { script = "local x = 1\nprint(x)" }
    assert.equal(0, (app:wait()))
    assert.is_nil(uv.fs_stat(app.dir .. "/moontide"))
  end)

  it("answers when the standard streams are closed", function()
    local app = proc.start { program = "/bin/sh", script = LISTENS, argv = { "-c",
      'exec "$0" "$@" <&- >&- 2>&-', os.getenv "MOONTIDE" } }
    local client = console.connect(app)
    assert.equal("2", client:eval("1 + 1").text)
    assert.equal("x\n", client:eval("print 'x' io.stderr:write 'lost' return nil").out)
    client:request { type = "drain", reason = "done" }
    client:event "report"
    client:close()
    assert.equal(0, (app:wait()))
  end)

  it("is no way out of the directory: what is in its place stays", function()
    local dir = proc.temp_dir()
    proc.write_file(dir .. "/app.lua", LISTENS)
    proc.write_file(dir .. "/precious", "kept")
    uv.fs_mkdir(dir .. "/moontide", 448)
    -- The name has the pid in it, so the link is made by the process that then becomes the host.
    local app = proc.start { dir = dir, program = "/bin/sh", argv = { "-c",
      'ln -s ../precious "$1/moontide/app-$$.sock"; exec "$0" "$1/app.lua"',
      os.getenv "MOONTIDE", dir } }
    local record = app:wait_log { component = "control", level = "warn" }
    assert.matches("a file of that name that is no socket", record.msg)
    assert.equal("kept", proc.read_file(dir .. "/precious"))
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.is_truthy(uv.fs_lstat(("%s/moontide/app-%d.sock"):format(dir, app.pid)))
  end)

  it("takes the place of one that was left behind", function()
    local dir = proc.temp_dir()
    proc.write_file(dir .. "/app.lua", LISTENS)
    uv.fs_mkdir(dir .. "/moontide", 448)
    local app = proc.start { dir = dir, program = "/bin/sh", argv = { "-c",
      'f="$1/moontide/app-$$.sock"; timeout 0.2 nc -lU "$f"; test -S "$f" && '
        .. 'exec "$0" "$1/app.lua"', os.getenv "MOONTIDE", dir } }
    app:wait_log { component = "lifecycle", msg = "ready" }
    loop.wait(function()
      local client = console.connect(app)
      local ok = client:hello().pid == app.pid
      client:close()
      return ok
    end, 10, "an answer")
  end)
end)
