-- Which process a command means: by name, process or path, or the only one; and what is said when
-- there is none, or several.
local fake_host = require "support.fake_host"
local proc = require "support.process"
local uv = require "luv"

local function hosts(...)
  local dir, list = proc.temp_dir(), {}
  for i, options in ipairs { ... } do
    options.dir = dir
    list[i] = fake_host.start(options.name, options)
    list[i].on.eval = function(conn, message)
      conn:send { id = message.id, type = "value", text = "host " .. i, n = 1 }
      conn:done(message.id)
    end
  end
  return dir, list
end

local function eval(dir, ...)
  local argv = { "eval" }
  for _, word in ipairs { ... } do argv[#argv + 1] = word end
  argv[#argv + 1] = "1"
  local code, out, err = proc.run { argv = argv, env = { RUNTIME_DIRECTORY = dir or false },
    manage = false }
  return code, out, err
end

describe("the process is found", function()
  it("by its name, its number, the path of its socket", function()
    local dir, list = hosts({ name = "orders", pid = 4001 }, { name = "billing", pid = 4002 })
    for i, words in ipairs { { "orders", "4001" }, { "billing", "4002" } } do
      words[3] = list[i].path
      for _, word in ipairs(words) do
        assert.same({ 0, ("host %d\n"):format(i), "" }, { eval(dir, word) })
      end
    end
  end)

  it("by a path that has no such name", function()
    local dir, list = hosts { name = "orders", file = "any" }
    assert.same({ 0, "host 1\n", "" }, { eval(nil, list[1].path) })
    assert.is_string(dir)
  end)

  it("without a word when it is the only one", function()
    local dir = hosts { name = "orders", pid = 4001 }
    assert.same({ 0, "host 1\n", "" }, { eval(dir) })
  end)

  it("by a name with a slash, and one that is a number", function()
    local dir = hosts({ name = "a_b", pid = 4001 }, { name = "4711", pid = 4002 })
    local path = eval(dir, "a/b") -- means a path: there is none
    assert.equal(69, path)
    assert.same({ 0, "host 1\n", "" }, { eval(dir, "a_b") })
    assert.same({ 0, "host 2\n", "" }, { eval(dir, "4711") })
  end)

  it("in the directory of --dir, of control.dir, of the session, in this order", function()
    local told = hosts { name = "orders", pid = 4001 }
    local other, list = hosts { name = "orders", pid = 4002 }
    list[1].on.eval = function(conn, message)
      conn:send { id = message.id, type = "value", text = "the other", n = 1 }
      conn:done(message.id)
    end
    local function run(env, ...)
      local code, out = proc.run { argv = { "eval", ... }, env = env, manage = false }
      return { code, out }
    end
    assert.same({ 0, "the other\n" }, run({ RUNTIME_DIRECTORY = told }, "1", "--dir",
      other .. "/moontide"))
    assert.same({ 0, "the other\n" }, run({ RUNTIME_DIRECTORY = told,
      MOONTIDE_CONTROL__DIR = other .. "/moontide" }, "1"))
    assert.same({ 0, "host 1\n" }, run({ RUNTIME_DIRECTORY = told, XDG_RUNTIME_DIR = other }, "1"))
    assert.same({ 0, "the other\n" }, run({ RUNTIME_DIRECTORY = false, XDG_RUNTIME_DIR = other },
      "orders", "1"))
    -- What systemd makes for a unit of the session: RuntimeDirectory=orders.
    local base = proc.temp_dir()
    uv.fs_symlink(other, base .. "/orders")
    assert.same({ 0, "the other\n" }, run({ RUNTIME_DIRECTORY = false, XDG_RUNTIME_DIR = base },
      "orders", "1"))
  end)
end)

describe("the process is not found", function()
  it("when there is none: 69, and where was looked", function()
    local dir = hosts { name = "orders", pid = 4001 }
    local code, out, err = eval(dir, "order")
    assert.same({ 69, "" }, { code, out })
    assert.matches('no live process "order" in ' .. dir .. "/moontide; there is orders (4001)", err,
      1, true)
    local empty = proc.temp_dir()
    code, out, err = eval(empty)
    assert.same({ 69, "" }, { code, out })
    assert.matches("no live process in " .. empty .. "/moontide (--dir", err, 1, true)
    code, out, err = proc.run { argv = { "eval", "nobody", "1" }, manage = false,
      env = { RUNTIME_DIRECTORY = false, XDG_RUNTIME_DIR = empty } }
    assert.same({ 69, "" }, { code, out })
    assert.matches(empty .. "/moontide, " .. empty .. "/*/moontide, /tmp/moontide-", err, 1, true)
    assert.matches(", /run/*/moontide", err, 1, true)
  end)

  it("when several have the name: 64, and all with their states", function()
    local dir = hosts({ name = "orders", pid = 4001 },
      { name = "orders", pid = 4002, state = "draining" }, { name = "billing", pid = 4003 })
    local code, out, err = eval(dir, "orders")
    assert.same({ 64, "" }, { code, out })
    assert.matches('2 processes are called "orders"', err, 1, true)
    assert.matches("\n  4001 +ready +orders ", err)
    assert.matches("\n  4002 +draining +orders ", err)
    assert.is_nil(err:find("billing", 1, true))
    code, out, err = eval(dir)
    assert.same({ 64, "" }, { code, out })
    assert.matches("3 processes live", err, 1, true)
    assert.matches("\n  4003 +ready +billing ", err)
  end)

  it("when one of several does not say its state, without waiting for it for long", function()
    local dir, list = hosts({ name = "orders", pid = 4001 }, { name = "orders", pid = 4002 })
    list[2].on.hello = function() end
    local _, _, err = eval(dir, "orders")
    assert.matches("\n  4002 +no answer +orders ", err)
  end)

  it("when its process has died: the file is removed", function()
    local dir, list = hosts { name = "orders", pid = 4194305 } -- beyond what the kernel gives
    local path = list[1].path
    -- A socket that stays behind: closing a uv_pipe would remove it.
    uv.fs_rename(path, path .. ".kept")
    list[1]:stop()
    uv.fs_rename(path .. ".kept", path)
    local code, _, err = eval(nil, path)
    assert.equal(69, code)
    assert.matches("its process has died", err, 1, true)
    assert.is_truthy(uv.fs_stat(path))
    assert.equal(69, (eval(dir, "orders")))
    assert.is_nil((uv.fs_stat(path)))
  end)

  it("when its process lives and does not listen yet: the file stays", function()
    local dir, list = hosts { name = "orders" } -- the number is the test's own
    local path = list[1].path
    uv.fs_rename(path, path .. ".kept")
    list[1]:stop()
    uv.fs_rename(path .. ".kept", path)
    assert.equal(69, (eval(dir, "orders")))
    assert.is_truthy(uv.fs_stat(path))
  end)

  it("by a path where nothing is, or that is too long", function()
    local code, _, err = eval(nil, "/tmp/nothing/orders-1.sock")
    assert.equal(69, code)
    assert.matches("/tmp/nothing/orders-1.sock: no such file", err, 1, true)
    code, _, err = eval(nil, "/tmp/" .. ("x"):rep(120))
    assert.equal(69, code)
    assert.matches("at most 107 bytes", err, 1, true)
  end)
end)

describe("a process that refuses", function()
  it("another user: 69 and its reason", function()
    local dir, list = hosts { name = "orders", pid = 4001 }
    list[1].on.hello = function(conn)
      conn:send { type = "refused", why = "uid", message = "process 4001 belongs to user 7" }
      conn:close()
    end
    local code, _, err = eval(dir, "orders")
    assert.equal(69, code)
    assert.matches("process 4001 belongs to user 7", err, 1, true)
  end)

  it("as one session too many: 69 and its reason", function()
    local dir, list = hosts { name = "orders", pid = 4001 }
    list[1].on.hello = function(conn, message)
      conn:send { id = message.id, type = "error", message = "there are 8 sessions already" }
      conn:done(message.id, "refused")
    end
    local code, _, err = eval(dir, "orders")
    assert.equal(69, code)
    assert.matches("there are 8 sessions already", err, 1, true)
  end)
end)
