-- The programs of examples/ that embed the library: built as their README says, against an
-- installed moontide, and run.
local console = require "support.console"
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"
local usage = require "support.usage"

local build = os.getenv "MOONTIDE_BUILD"
local examples = os.getenv "MOONTIDE_SOURCE" .. "/examples/"

local function sh(command)
  local code, out, err = proc.run {
    program = "/bin/sh", argv = { "-c", command }, timeout = 180,
  }
  assert.equal(0, code, command .. "\n" .. out .. err)
  return out
end

-- Programs that are not instrumented cannot link the instrumented library.
if build:find "asan" or build:find "tsan" then
  describe("an embedding example", function()
    pending "is built against the normal build"
  end)
  return
end

local function built(name)
  local prefix = proc.temp_dir() .. "/prefix"
  sh(("cmake --install %s --prefix %s"):format(build, prefix))
  local dir = proc.temp_dir()
  sh(("cmake -S %s%s -B %s -DCMAKE_PREFIX_PATH=%s -DCMAKE_C_FLAGS='-Wall -Wextra -Werror'"
    .. " >/dev/null && cmake --build %s"):format(examples, name, dir, prefix, dir))
  return dir .. "/" .. name, dir
end

describe("examples/embed-lua", function()
  it("serves from the program's own Lua state, which outlives the host", function()
    local app = proc.start {
      program = built "embed-lua", argv = { examples .. "embed-lua/app.lua" }, manage = false,
    }
    app:wait_log { msg = "ready" }
    assert.equal(200, assert(http.get(app.port, "/visit/ann")).status)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.equal("hello, ann\nhello, and goodbye, after 1\nvisits: 1\n", app:stdout())
  end)
end)

describe("examples/edge-proxy", function()
  -- Answers each line with its own name and the line, until the client has ended.
  local function backend(name)
    local app = proc.start {
      script = ([[
        local tide, uv = require "moontide", require "luv"
        tide.config { manage = false, shutdown = { linger = 0 } }
        local server = uv.new_tcp()
        server:bind("127.0.0.1", tonumber(os.getenv "PORT"))
        server:listen(16, function()
          local client = uv.new_tcp()
          server:accept(client)
          client:read_start(function(_, data)
            if data then client:write("%s " .. data) else client:close() end
          end)
        end)
      ]]):format(name), manage = false,
    }
    app:wait_log { msg = "ready" }
    return app
  end

  local function ask(conn, text)
    conn:send(text .. "\n")
    loop.try(function() return conn.buffer:find "\n" or conn.closed end, 5)
    local line = conn.buffer
    conn.buffer = ""
    return line
  end

  -- With a limit on descriptors, if one is given.
  local function start(routes, descriptors)
    local path = proc.temp_dir() .. "/routes.lua"
    local program = built "edge-proxy"
    proc.write_file(path, routes)
    if descriptors then
      local limited = proc.temp_dir() .. "/limited"
      proc.write_file(limited, ("#!/bin/sh\nulimit -n %d\nexec %s \"$@\"\n"):format(descriptors,
        program))
      os.execute("chmod +x " .. limited)
      program = limited
    end
    local app = proc.start {
      program = program, argv = { examples .. "edge-proxy/app.lua" }, manage = false,
      env = { ROUTES = path },
    }
    app:wait_log { msg = "ready" }
    return app, path
  end

  it("forwards, takes other routes at SIGHUP, and drains", function()
    local a, b, port = backend "a", backend "b", proc.free_port()
    local line = "return { [%d] = '127.0.0.1:%d' }"
    local app, path = start(line:format(port, a.port))
    local first = assert(http.connect(port))
    assert.equal("a one\n", ask(first, "one"))
    proc.write_file(path, line:format(port, b.port))
    app:signal "HUP"
    loop.try(function() return #app:find_logs { msg = "routes" } == 2 end, 5)
    local second = assert(http.connect(port))
    assert.equal("b two\n", ask(second, "two"))
    assert.equal("a three\n", ask(first, "three")) -- it keeps its target
    proc.write_file(path, "return 7")
    app:signal "HUP"
    app:wait_log { msg = "the routes stay as they are" }
    assert.equal("b four\n", ask(second, "four"))

    app:signal "TERM"
    app:wait_log(function(record) return record.phase == "service-unbind" end)
    assert.is_nil((http.connect(port))) -- the port is closed, who is connected goes on
    assert.equal("a five\n", ask(first, "five"))
    assert.is_nil(app.exited_at)
    first:close()
    second:close()
    assert.equal(0, (app:wait()))
  end)

  it("lets clients wait when it has no descriptor left, and does not spin", function()
    local a, port = backend "a", proc.free_port()
    local app = start(("return { [%d] = '127.0.0.1:%d' }"):format(port, a.port), 40)
    local served, waiting = {}, {}
    for i = 1, 24 do
      waiting[i] = assert(http.connect(port)) -- by the kernel, at least
      waiting[i]:send(("%d\n"):format(i))
    end
    local function sort_out()
      for i, conn in pairs(waiting) do
        assert.is_nil(conn.closed, "nobody is closed")
        if conn.buffer ~= "" then
          assert.equal(("a %d\n"):format(i), conn.buffer)
          served[#served + 1], waiting[i] = conn, nil
        end
      end
    end
    loop.wait(function() sort_out() return #served > 4 end, 10, "some that are served")
    loop.turn_for(0.3) -- those that can be
    sort_out()
    assert.is_true(#served < 20, "not all of them")
    -- Ten looks a second; the bound is for a machine that is busy. It was 1.
    assert.is_true(usage.cpu_share(app.pid, 1) < 0.2)

    loop.wait(function()
      for _, conn in ipairs(served) do conn:close() end
      served = {}
      sort_out()
      return next(waiting) == nil
    end, 10, "all that are served, one after another")
    app:signal "TERM"
    for _, conn in ipairs(served) do conn:close() end
    assert.equal(0, (app:wait()))
  end)
end)

describe("examples/game-server", function()
  local json = require "moontide.json"
  local program, dir

  setup(function() program, dir = built "game-server" end)

  local function start(options)
    local game_port = proc.free_port()
    local env = { GAME_PORT = game_port, SCORES = proc.temp_dir() .. "/scores.txt" }
    for name, value in pairs(options) do env[name] = value end
    local app = proc.start {
      program = program, argv = { examples .. "game-server/app.lua" }, env = env,
    }
    app:wait_ready()
    local function join(...)
      return proc.start { program = dir .. "/client", argv = { game_port, ... }, manage = false }
    end
    return app, join, env.SCORES
  end

  local function said(client, text)
    loop.wait(function() return client:stdout():find(text, 1, true) end, 10, text)
  end

  local function get(app, path)
    local answer = assert(http.get(app.port, path))
    assert.equal(200, answer.status)
    return json.decode(answer.body)
  end

  it("lets the running match end, begins no other, and saves the scores", function()
    local app, join, scores = start { MATCH = 4 }
    local players = join("ann", "bob")
    said(players, "bob: match 1")
    local waits = join "carl"
    said(waits, "carl: wait 1")
    assert.equal(1, #get(app, "/matches").matches)

    app:signal "TERM"
    said(players, "ann: notice draining")
    said(waits, "carl: refused draining")
    local late = join "dora"
    assert.equal(3, (late:wait()))
    assert.equal("dora: refused draining\n", late:stdout())
    assert.equal(0, (players:wait())) -- both have played to the end
    assert.matches("ann: over 1 %d+ time\n", players:stdout())
    assert.equal(0, (app:wait()))
    assert.equal(1, #app:find_logs { task = "drain:program", outcome = "ok" })
    local text = assert(proc.read_file(scores))
    assert.matches("^%d+ ann\n", text:gsub("^%d+ bob\n", ""))

    -- A look at an empty epoll takes microseconds; the bound is for a machine that is busy.
    local p99 = app:stdout():match "^%d+ frames, .*p99 (%d+) us"
    assert.is_true(tonumber(p99) < 5000, p99)
  end)

  it("shows matches and ends one, and is not ready when it is full", function()
    local app, join, scores = start { MATCH = 60, MOST_PLAYERS = 2 }
    local players = join("ann", "bob")
    said(players, "bob: match 1")
    local match = get(app, "/matches").matches[1]
    assert.equal(2, match.players)
    assert.is_true(match.seconds_left > 0)
    loop.wait(function()
      return http.get(app.manage_port, "/health/ready").status == 503
    end, 10, "a full server that is not ready")
    local late = join "carl"
    assert.equal(3, (late:wait()))
    assert.equal("carl: refused full\n", late:stdout())

    assert.equal(404, assert(http.request("DELETE", app.port, "/matches/7")).status)
    assert.equal(204, assert(http.request("DELETE", app.port, "/matches/1")).status)
    assert.equal(0, (players:wait()))
    assert.matches("bob: over 1 %d+ ended\n", players:stdout())
    assert.equal(0, #get(app, "/matches").matches)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.is_string(proc.read_file(scores))
  end)

  describe("its console", function()
    local function at_console(app, ...)
      local code, out, err = proc.run {
        program = os.getenv "MOONTIDE", argv = { "eval", ... }, timeout = 60,
        env = { RUNTIME_DIRECTORY = app.dir },
      }
      return code, out, err
    end

    local function frames(app)
      local code, out = at_console(app, "--json", "game-server", "game.frames(true)")
      assert.equal(0, code)
      return json.decode(out)
    end

    it("shows matches live and ends one, to the very end", function()
      local app, join = start { MATCH = 60 }
      console.socket(app)
      local code, out = at_console(app, "game-server", "matches()")
      assert.equal("0 {}\n", code .. " " .. out)
      local players = join("ann", "bob")
      said(players, "bob: match 1")
      code, out = at_console(app, "game-server", "matches()")
      assert.equal(0, code)
      assert.matches("id = 1, players = 2", out)
      assert.equal("false\n", select(2, at_console(app, "game-server", "end_match(7)")))
      app:signal "TERM"
      app:wait_log { to = "draining" }
      assert.equal("true\n", select(2, at_console(app, "game-server", "end_match(1)")))
      assert.equal(0, (players:wait()))
      assert.matches("bob: over 1 %d+ ended\n", players:stdout())
      assert.equal(0, (app:wait()))
    end)

    it("does not eat frames, whatever is typed", function()
      local app, join = start { MATCH = 60, MOONTIDE_SHUTDOWN__DRAIN = "300ms" }
      console.socket(app)
      join("ann", "bob")
      frames(app)
      for _, endless in ipairs { "while true do end", "while true do matches() end",
        "while true do pcall(string.rep, 'x', 1000) end" } do
        local code = at_console(app, "--timeout=1s", "game-server", endless)
        assert.equal(124, code)
        -- The share is 0.1 ms of 16.7, and most frames have that: not a millisecond of Lua, as a
        -- turn of a loop of the host's has, nor the 20 ms of what is not paused. The bound is for
        -- a build without optimisation, on a machine that is busy.
        local share = frames(app)
        assert.is_true(share.p50_us < 800, endless .. ": " .. share.p50_us)
        assert.is_true(share.frames > 30)
      end
      app:signal "TERM"
      assert.equal(0, (app:wait()))
    end)
  end)

  it("cuts a match that takes longer than the drain", function()
    local app, join = start { MATCH = 60, MOONTIDE_SHUTDOWN__DRAIN = "300ms" }
    local players = join("ann", "bob")
    said(players, "bob: match 1")
    app:signal "TERM"
    assert.equal(0, (players:wait()))
    assert.matches("bob: over 1 %d+ shutdown\n", players:stdout())
    assert.equal(0, (app:wait()))
    assert.equal("1 match", app:wait_log { msg = "work of the program is still in flight" }.work)
  end)

  it("does not start without its world", function()
    local app = proc.start {
      program = program, argv = { examples .. "game-server/app.lua" },
      env = { WORLD = "/nowhere/world.txt", SCORES = dir .. "/scores.txt" },
    }
    assert.equal(1, (app:wait()))
    assert.is_nil(proc.read_file(dir .. "/scores.txt")) -- nothing does not replace a file
    app:wait_log(function(record)
      return record.msg:find("/nowhere/world.txt: no such file or directory", 1, true)
    end)
  end)
end)
