-- The out-of-band line is beside the control socket, whatever says where that is, from 50 ms of age
-- on to the end of the process; and only where it is wanted.
local console = require "support.console"
local loop = require "support.loop"
local oob = require "support.oob"
local proc = require "support.process"
local uv = require "luv"

local STAY = "local tide = require 'moontide' tide.run_until_terminated()"

local function files(directory)
  local list, scan = {}, uv.fs_scandir(directory)
  local name = scan and uv.fs_scandir_next(scan)
  while name do
    list[#list + 1] = name
    name = uv.fs_scandir_next(scan)
  end
  return list
end

local function assert_ends(app)
  app:signal "TERM"
  assert.equal(0, (app:wait()))
end

describe("the out-of-band line", function()
  it("is only its user's, and gone with the process", function()
    local app = proc.start { script = STAY }
    local line = oob.connect(app)
    local stat = uv.fs_stat(oob.path(app))
    assert.equal(tonumber("600", 8), stat.mode & tonumber("777", 8))
    assert.equal("ok", line:ask("status").status)
    line:close()
    assert_ends(app)
    assert.is_nil(uv.fs_stat(oob.path(app)))
  end)

  -- Each of the ways to say where; control_files.lua and the core must agree.
  for what, env in pairs {
    ["control.dir"] = function(dir) return { MOONTIDE_CONTROL__DIR = dir .. "/moontide" } end,
    ["a list in RUNTIME_DIRECTORY"] = function(dir)
      return { RUNTIME_DIRECTORY = dir .. ":/nowhere" }
    end,
    ["XDG_RUNTIME_DIR"] = function(dir)
      return { RUNTIME_DIRECTORY = "relative", XDG_RUNTIME_DIR = dir }
    end,
  } do
    it("is where the control socket is by " .. what, function()
      local dir = proc.temp_dir()
      local app = proc.start { script = "local tide = require 'moontide' "
        .. "tide.config { shutdown = { linger = 0 } }"
        .. "tide.http.listen { port = tonumber(os.getenv 'PORT') }", env = env(dir) }
      local both = { [("app-%d.oob"):format(app.pid)] = true,
        [("app-%d.sock"):format(app.pid)] = true, [".lock"] = true }
      loop.wait(function() return #files(dir .. "/moontide") == 3 end, 15, "both in " .. dir)
      for _, name in ipairs(files(dir .. "/moontide")) do assert.is_true(both[name], name) end
      assert_ends(app)
      assert.same({ ".lock" }, files(dir .. "/moontide"))
    end)
  end

  it("moves to the name that a script which loads slowly gives at last", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.sleep "300ms"
      tide.config { name = "the/orders" }
      tide.run_until_terminated()]] }
    oob.connect(app):close() -- under the script's name
    local line = oob.connect(app, "the_orders")
    assert.equal("the/orders", line:ask("status").value.status.name)
    loop.wait(function() return not uv.fs_stat(oob.path(app)) end, 15, "the end of the former")
    line:close()
    assert_ends(app)
  end)

  it("lets look only, where console.policy says so, as it does in production", function()
    for _, env in ipairs { { MOONTIDE_CONSOLE__POLICY = "inspect" },
      { MOONTIDE_ENV = "production" } } do
      local app = proc.start { script = STAY, env = env }
      local line = oob.connect(app)
      assert.equal("ok", line:ask("where").status)
      assert.equal("refused", line:ask("interrupt").status)
      assert.equal("refused", line:ask("abort").status)
      app:wait_log { msg = "refused by console.policy", what = "abort", component = "watchdog" }
      line:close()
      assert_ends(app)
    end
  end)

  it("is not there where it is turned off", function()
    for _, env in ipairs { { MOONTIDE_CONSOLE__POLICY = "off" },
      { MOONTIDE_CONTROL__SOCKET = "false" } } do
      local app = proc.start { script = [[
        local tide = require "moontide"
        tide.sleep "200ms" -- four times the age at which it would come
        io.stdout:write "old" io.stdout:flush()
        tide.run_until_terminated()]], env = env }
      app:wait_stdout "old"
      assert.is_nil(uv.fs_stat(oob.path(app)))
      assert_ends(app)
    end
  end)

  it("says on standard error why it cannot be, and the process runs on", function()
    local dir = proc.temp_dir()
    assert(uv.fs_chmod(dir, tonumber("755", 8)))
    local app = proc.start { script = STAY, env = { MOONTIDE_CONTROL__DIR = dir } }
    local record = app:wait_log { msg = "no out-of-band line", level = "warn" }
    assert.matches("its mode is 0755", record.error)
    assert_ends(app)
  end)

  it("leaves a short run alone", function()
    local code, _, _, app = proc.run { script = "local tide = require 'moontide'" }
    assert.equal(0, code)
    -- Longer than 50 ms only on a machine that has no time at all.
    if app.exited_at - app.started_at < 0.05 then
      assert.is_nil(uv.fs_stat(app.dir .. "/moontide"))
    end
  end)

  it("that a killed process has left goes with the socket that it left", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.http.listen { port = tonumber(os.getenv "PORT") }]] }
    oob.connect(app):close()
    local socket = console.socket(app)
    app:kill()
    app:wait()
    assert.is_table(uv.fs_stat(socket))
    assert.is_table(uv.fs_stat(oob.path(app)))
    local code = proc.run { argv = { "status", "app" }, manage = false,
      env = { RUNTIME_DIRECTORY = app.dir } }
    assert.equal(69, code)
    assert.is_nil(uv.fs_stat(socket))
    assert.is_nil(uv.fs_stat(oob.path(app)))
  end)

  it("answers while the control socket is served", function()
    local app = proc.start { script = [[
      local tide = require "moontide"
      tide.config { shutdown = { linger = 0 } }
      tide.http.listen { port = tonumber(os.getenv "PORT") }]] }
    local line = oob.connect(app)
    local client = console.connect(app)
    assert.equal("ready", client:hello().state)
    assert.equal("ready", line:ask("status").value.status.state)
    client:close()
    line:close()
    assert_ends(app)
  end)
end)
