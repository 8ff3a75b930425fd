-- What the build leaves: a binary that needs nothing of the tree, a library that
-- can be run from the tree, a module for a stock interpreter, an install.
local http = require "support.http_client"
local proc = require "support.process"

local build = os.getenv "MOONTIDE_BUILD"
local source = os.getenv "MOONTIDE_SOURCE"

local SERVICE = [[
local tide = require "moontide"
tide.config { name = "built", shutdown = { linger = 0 } }
tide.http.listen { name = "api", port = tonumber(os.getenv "PORT") }
]]

local function program(path, options)
  options.program = path
  local code, out, err = proc.run(options)
  return code, out .. err
end

describe("the binary", function()
  it("runs alone in a foreign directory", function()
    local dir = proc.temp_dir()
    assert.equal(0, (program("/bin/cp", { argv = { os.getenv "MOONTIDE", dir .. "/copied" } })))
    local app = proc.start {
      program = dir .. "/copied", script = SERVICE, cwd = dir,
      env = { LUA_PATH_5_4 = false, LUA_CPATH_5_4 = false },
    }
    app:wait_ready()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)

  it("takes the Lua library from MOONTIDE_LUA_PATH", function()
    local dir = proc.temp_dir()
    assert.equal(0, (program("/bin/cp", { argv = { "-r", source .. "/lua", dir .. "/lua" } })))
    local init = dir .. "/lua/moontide/init.lua"
    proc.write_file(init, "print('from the tree')\n" .. proc.read_file(init))
    local app = proc.start {
      script = SERVICE, env = { MOONTIDE_LUA_PATH = dir .. "/lua" },
    }
    app:wait_ready()
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.matches("from the tree", app:stdout())
  end)
end)

describe("the module", function()
  it("loads in a stock interpreter and leaves it alone", function()
    local app = proc.start_lua {
      argv = { "-e", "local tide = require 'moontide' print(tide.version)" },
    }
    assert.equal(0, (app:wait()))
    assert.matches("^%d+%.%d+%.%d+\n$", app:stdout())
    assert.equal("", app:stderr())
  end)

  it("serves from its own loop until SIGTERM", function()
    local app = proc.start_lua { script = SERVICE .. "tide.run_until_terminated()\n" }
    app:wait_log { to = "ready" }
    assert.equal(404, assert(http.get(app.port, "/")).status)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)
end)

describe("cmake --install", function()
  it("puts binary, header, libraries and module in their places", function()
    local dir = proc.temp_dir()
    local code, said = program("/usr/bin/cmake", { argv = { "--install", build, "--prefix", dir } })
    assert.equal(0, code, said)
    for _, path in ipairs { "bin/moontide", "include/moontide.h" } do
      assert.is_string(proc.read_file(dir .. "/" .. path), path)
    end
    local _, found = program("/usr/bin/find", { argv = { dir .. "/lib" } })
    assert.matches("/libmoontide%.a\n", found)
    assert.matches("/libmoontide%.so\n", found)
    assert.matches("/lua/5%.4/moontide%.so\n", found)
  end)
end)
