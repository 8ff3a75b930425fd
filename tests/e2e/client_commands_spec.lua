-- `moontide eval`, `drain`, `tail`: what they ask, what they print where, and their exit codes. The
-- host is a fake one.
local fake_host = require "support.fake_host"
local json = require "cjson"
local loop = require "support.loop"
local proc = require "support.process"

local function run(host, argv, options)
  options = options or {}
  local code, out, err = proc.run { argv = argv, env = host.env, manage = false,
    stdin = options.stdin }
  return code, out, err
end

-- A host that answers each request of a type with these messages.
local function host_with(kind, ...)
  local host, messages = fake_host.start "orders", { ... }
  host.on[kind] = function(conn, request)
    for _, message in ipairs(messages) do
      local copy = { id = request.id }
      for key, value in pairs(message) do copy[key] = value end
      conn:send(copy)
    end
  end
  return host
end

local function value(fields)
  fields.type = "value"
  return fields
end

local function done(status)
  return { type = "done", status = status or "ok", ms = 0 }
end

describe("moontide eval", function()
  it("prints what is printed, then the values, and exits 0", function()
    local host = host_with("eval", { type = "out", text = "a\n" }, { type = "err", text = "b\n" },
      value { text = "1\t2", n = 2 }, done())
    assert.same({ 0, "a\n1\t2\n", "b\n" }, { run(host, { "eval", "orders", "f()" }) })
    local asked = host:wait_for "eval"
    assert.same({ "f()", 30 }, { asked.source, asked.timeout })
  end)

  it("prints what a trace shows while the source runs, and no other event", function()
    local host = fake_host.start "orders"
    host.on.eval = function(conn, request)
      conn:send { type = "event", event = "trace", target = "f", text = "f(1) = 2" }
      conn:send { type = "event", event = "state", state = "draining" }
      conn:done(request.id)
    end
    assert.same({ 0, "f(1) = 2\n", "" }, { run(host, { "eval", "orders", "tide.sleep(1)" }) })
  end)

  it("prints nothing for no value", function()
    local host = host_with("eval", value { text = "", n = 0 }, done())
    assert.same({ 0, "", "" }, { run(host, { "eval", "x = 1" }) })
  end)

  it("takes its source from a file, or from standard input", function()
    local host = host_with("eval", done())
    local path = proc.temp_dir() .. "/probe.lua"
    proc.write_file(path, "return 1\n")
    local ways = { { "-f", path }, { "--file=" .. path, "orders" }, { "orders", "-f", path },
      { "-" }, { "orders", "-" } }
    for i, argv in ipairs(ways) do
      table.insert(argv, 1, "eval")
      assert.equal(0, (run(host, argv, { stdin = "return 1\n" })))
      assert.equal("return 1\n", host:wait_for("eval", i).source)
    end
  end)

  it("prints values as JSON, one a line", function()
    local host = host_with("eval", value { text = "-", n = 1, json = { a = { 1, 2 } } }, done())
    assert.same({ 0, '{"a":[1,2]}\n', "" }, { run(host, { "eval", "--json", "1" }) })
    host = host_with("eval", value { text = "-", n = 2, json = { false, "x" } }, done())
    assert.same({ 0, 'false\n"x"\n', "" }, { run(host, { "eval", "--json", "1" }) })
    host = host_with("eval", value { text = "-", n = 1, json = json.null }, done())
    assert.same({ 0, "null\n", "" }, { run(host, { "eval", "--json", "1" }) })
  end)

  local ends = {
    { "an error", 1, { type = "error", message = "x:1: no", traceback = "x:1: no\nstack" },
      done "error", "^x:1: no\nstack\n$" },
    { "a refusal", 1, { type = "error", message = "you may only look" }, done "refused",
      "^you may only look\n$" },
    { "its deadline", 124, { type = "error", message = "timed out" }, done "timeout",
      "^timed out\n$" },
    { "its deadline without a word", 124, { type = "out", text = "" }, done "timeout",
      "longer than 30 s" },
    { "a cancellation", 130, { type = "error", message = "cancelled" }, done "cancelled",
      "cancelled" },
    { "source that is not finished", 1, { type = "need_more" }, done "incomplete",
      "the source is not finished" },
  }
  for _, case in ipairs(ends) do
    it(("exits %d for %s"):format(case[2], case[1]), function()
      local code, out, err = run(host_with("eval", case[3], case[4]), { "eval", "1" })
      assert.same({ case[2], "" }, { code, out })
      assert.matches(case[5], err)
    end)
  end

  it("exits 69 when the process goes away meanwhile", function()
    local host = fake_host.start "orders"
    host.on.eval = function(conn) conn:close() end
    local code, _, err = run(host, { "eval", "1" })
    assert.equal(69, code)
    assert.matches("has closed the connection\n$", err)
  end)

  it("does not wait for ever: 124", function()
    local host = fake_host.start "orders"
    host.on.hello = function() end
    local code, _, err = run(host, { "eval", "--timeout", "100ms", "1" })
    assert.equal(124, code)
    assert.matches("has not answered in time", err)
  end)

  it("asks for an interruption at SIGINT, three times, and leaves at the fourth: 130", function()
    local host = fake_host.start "orders"
    local client = proc.start { argv = { "eval", "spin()" }, env = host.env, manage = false }
    local id = host:wait_for("eval").id
    for i = 1, 3 do
      client:signal "INT"
      assert.equal(id, host:wait_for("interrupt", i).of)
    end
    client:signal "INT"
    assert.equal(130, client:wait())
  end)

  it("ends at SIGTERM", function()
    local host = fake_host.start "orders"
    local client = proc.start { argv = { "eval", "spin()" }, env = host.env, manage = false }
    host:wait_for "eval"
    client:signal "TERM"
    assert.equal(143, client:wait())
  end)

  it("sends a megabyte to a process that is slow to read it", function()
    local host = fake_host.start "orders"
    host.on.eval = function(conn, message) conn:done(message.id) end
    local hello = host.on.hello
    host.on.hello = function(conn, message)
      hello(conn, message)
      conn.pipe:read_stop()
      local timer = require("luv").new_timer()
      timer:start(200, 0, function()
        timer:close()
        conn:listen()
      end)
    end
    local source = "-- " .. ("x"):rep(1000000)
    assert.equal(0, (run(host, { "eval", "-" }, { stdin = source })))
    assert.equal(#source, #host:wait_for("eval").source)
  end)
end)

describe("moontide drain", function()
  it("asks with a reason and prints what is begun", function()
    local host = host_with("drain", value { text = "draining", plan = { total = 40 } }, done())
    assert.same({ 0, "draining\n", "" }, { run(host, { "drain", "orders", "--reason", "kernel" }) })
    local asked = host:wait_for "drain"
    assert.same({ "kernel", false }, { asked.reason, asked.dry })
  end)

  it("only looks with --dry, also as JSON", function()
    local host = host_with("drain", value { text = "plan", plan = { total = 40 } }, done())
    assert.same({ 0, "plan\n", "" }, { run(host, { "drain", "--dry" }) })
    assert.is_true(host:wait_for("drain").dry)
    assert.same({ 0, '{"total":40}\n', "" }, { run(host, { "drain", "--dry", "--json" }) })
  end)

  it("exits 0 when the process goes away behind its answer", function()
    local host = fake_host.start "orders"
    host.on.drain = function(conn, message)
      conn:send { id = message.id, type = "value", text = "draining", plan = {} }
      conn.pipe:shutdown()
    end
    assert.same({ 0, "draining\n", "" }, { run(host, { "drain", "--reason", "x" }) })
  end)

  it("exits 1 when it is refused", function()
    local host = host_with("drain", { type = "error", message = "you may only look" },
      done "refused")
    assert.same({ 1, "", "you may only look\n" }, { run(host, { "drain", "--reason", "x" }) })
  end)
end)

describe("moontide tail", function()
  local RECORD = { time = "12:00", level = "warn", component = "db", msg = "it is slow", ms = 7,
    sql = "select 1" }

  local function tailed(host)
    host.on.tail = function(conn, message)
      conn:send { id = message.id, type = "event", event = "log", record = RECORD }
      host.tail = conn
    end
    return host
  end

  it("prints records until it is interrupted: 130", function()
    local host = tailed(fake_host.start "orders")
    local client = proc.start { argv = { "tail", "--level", "warn" }, env = host.env,
      manage = false }
    client:wait_stdout '(12:00 warn db it is slow ms=7 sql="select 1"\n)'
    assert.equal("warn", host:wait_for("tail").level)
    client:signal "INT"
    assert.equal(130, client:wait())
  end)

  it("says on stderr how many it has missed", function()
    local host = host_with("tail", { type = "event", event = "missed", records = 7 }, done())
    local code, out, err = run(host, { "tail" })
    assert.same({ 0, "" }, { code, out })
    assert.matches("7 records were missed", err)
  end)

  it("prints them as JSON", function()
    local host = tailed(fake_host.start "orders")
    local code, out = run(host, { "tail", "--json", "--timeout", "300ms" })
    assert.equal(0, code)
    assert.same(RECORD, json.decode(out))
  end)

  it("ends with the process, and with its report: 0", function()
    local host = tailed(fake_host.start "orders")
    local client = proc.start { argv = { "tail" }, env = host.env, manage = false }
    client:wait_stdout "(slow)"
    host.tail:send { type = "event", event = "report", text = "exit code 0" }
    host.tail.pipe:shutdown()
    assert.equal(0, client:wait())
    assert.matches("slow.*\nexit code 0\n$", client:stdout())
  end)

  it("ends so as well when the process cancels it, behind its report", function()
    local host = host_with("tail", { type = "event", event = "report", text = "exit code 0" },
      { type = "error", message = "cancelled: the process ends" }, done "cancelled")
    assert.same({ 0, "exit code 0\n", "" }, { run(host, { "tail" }) })
  end)

  it("exits 69 when the process goes without a word", function()
    local host = tailed(fake_host.start "orders")
    local client = proc.start { argv = { "tail" }, env = host.env, manage = false }
    client:wait_stdout "(slow)"
    host:stop()
    assert.equal(69, client:wait())
  end)

  it("ends when nobody reads it any more", function()
    local host = tailed(fake_host.start "orders")
    local client = proc.start { program = "/bin/sh", manage = false, env = host.env,
      argv = { "-c", '"$0" tail | head -n 1', os.getenv "MOONTIDE" } }
    client:wait_stdout "(slow)"
    local answer = loop.try(function()
      host.tail:send { id = host:wait_for("tail").id, type = "event", event = "log",
        record = RECORD }
      return client.exited_at
    end, 10)
    assert.is_truthy(answer)
  end)
end)

describe("a process that is silent", function()
  local function stuck(where)
    local host = fake_host.start "orders"
    local line = fake_host.start("orders", { dir = host.dir, file = ("orders-%d.oob"):format(
      host.pid) })
    line.on.where = function(conn, message)
      conn:send { id = message.id, type = "value", where = where, text = "" }
      conn:done(message.id)
    end
    line.on.interrupt = function(conn, message)
      conn:send { id = message.id, type = "value", text = "interrupted" }
      conn:done(message.id)
    end
    return host, line
  end

  it("is explained by its watchdog after 2 s, which Ctrl-C is told as well", function()
    local host, line = stuck { loop = { alive_ms = 3100, waits = false },
      lua = { what = "import", at = "app.lua:7", ms = 3000 } }
    local from = loop.now()
    local client = proc.start { argv = { "eval", "spin()" }, env = host.env, manage = false }
    host:wait_for "eval"
    loop.wait(function()
      return client:stderr():find("the loop is stuck for 3.1 s in import, at app.lua:7; Ctrl-C", 1,
        true)
    end, 10, "the watchdog's word")
    assert.is_true(loop.now() - from >= 1.9)
    client:signal "INT"
    line:wait_for "interrupt"
    loop.wait(function() return client:stderr():find "\nmoontide: interrupted\n" end, 10)
    client:kill()
  end)

  it("can be interrupted by who waits for its first word", function()
    local host, line = stuck { loop = { alive_ms = 3100, waits = false },
      lua = { what = "import", ms = 3000 } }
    host.on.hello = function() end
    local client = proc.start { argv = { "console" }, env = host.env, manage = false }
    loop.wait(function() return client:stderr():find "stuck" end, 10, "the watchdog's word")
    for i = 1, 3 do
      client:signal "INT"
      line:wait_for("interrupt", i)
    end
    client:signal "INT"
    assert.equal(130, client:wait())
  end)

  it("says nothing while the loop is well: it waits for something", function()
    local host, line = stuck { loop = { alive_ms = 5000, waits = true }, lua = json.null }
    local client = proc.start { argv = { "eval", "tide.sleep(10)" }, env = host.env,
      manage = false }
    line:wait_for "where"
    local conn = host.conns[#host.conns]
    conn:send { id = host:wait_for("eval").id, type = "value", text = "slept", n = 1 }
    conn:done(host:wait_for("eval").id)
    assert.equal(0, client:wait())
    assert.same({ "slept\n", "" }, { client:stdout(), client:stderr() })
  end)
end)

describe("a wrong command line", function()
  local wrong = {
    { { "eval" }, "eval needs a SOURCE" },
    { { "eval", "a", "b", "c" }, 'not also "c"' },
    { { "eval", "-f", "x.lua", "a", "b" }, 'with --file there is no SOURCE: "b"' },
    { { "eval", "-f", "/nowhere/x.lua" }, "/nowhere/x.lua: No such file" },
    { { "eval", "--jsno", "1" }, 'unknown option "--jsno"; did you mean "--json"?' },
    { { "eval", "--json=yes", "1" }, "option --json takes no value" },
    { { "eval", "1", "--timeout" }, "option --timeout needs a value" },
    { { "eval", "1", "--timeout", "soon" }, '--timeout: "soon" is not a duration' },
    { { "console", "a", "b" }, 'not also "b"' },
    { { "console", "--json" }, 'unknown option "--json"' },
    { { "status", "a", "b" }, 'not also "b"' },
    { { "status", "--wait", "redy" }, 'unknown state "redy"; did you mean "ready"?' },
    { { "drain" }, "drain needs --reason TEXT" },
    { { "drain", "--reason", "" }, "drain needs --reason TEXT" },
    { { "tail", "--level", "wran" }, 'unknown level "wran"; did you mean "warn"?' },
  }
  for _, case in ipairs(wrong) do
    it("exits 64: moontide " .. table.concat(case[1], " "), function()
      local code, out, err = proc.run { argv = case[1], manage = false }
      assert.same({ 64, "" }, { code, out })
      assert.matches(case[2], err, 1, true)
    end)
  end
end)
