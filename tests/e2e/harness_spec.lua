-- The e2e harness itself: what it says of a process must be so.
local http = require "support.http_client"
local loop = require "support.loop"
local logline = require "support.logline"
local proc = require "support.process"
local uv = require "luv"

local function shell(text, options)
  options = options or {}
  options.program, options.argv = "/bin/sh", { "-c", text }
  return proc.start(options)
end

-- A server in this process: answers each read with the given bytes.
local function serve(bytes, then_close)
  local server = uv.new_tcp()
  server:bind("127.0.0.1", 0)
  server:listen(8, function()
    local client = uv.new_tcp()
    server:accept(client)
    client:read_start(function(err, data)
      if err or not data then return client:close() end
      client:write(bytes, function()
        if then_close and not client:is_closing() then client:close() end
      end)
    end)
  end)
  finally(function() server:close() end)
  return server:getsockname().port
end

describe("support.process", function()
  it("tells the exit code and both outputs apart", function()
    local script = "echo a; echo b >&2; exit 3"
    local code, out, err = proc.run { program = "/bin/sh", argv = { "-c", script } }
    assert.equal(3, code)
    assert.equal("a\n", out)
    assert.equal("b\n", err)
  end)

  it("tells the signal that ended a process", function()
    local sleeper = shell "exec sleep 60"
    sleeper:signal "TERM"
    local code, signal = sleeper:wait()
    assert.is_nil(code)
    assert.equal(15, signal)
  end)

  it("gives standard input and a free port", function()
    local process = shell("cat; echo port=$PORT", { stdin = "hello\n" })
    assert.equal(process.port, tonumber(process:wait_stdout "hello\nport=(%d+)"))
  end)

  it("raises with what the process said when it does not end in time", function()
    local sleeper = shell "echo here I am; exec sleep 60"
    sleeper:wait_stdout "here"
    local ok, message = pcall(sleeper.wait, sleeper, 0.05)
    assert.is_false(ok)
    assert.matches("waited .* in vain for the end of the process.*here I am", message)
  end)

  it("keeps its bound when what it asks has to wait itself", function()
    local sleeper = shell "exec sleep 60"
    local ok, message = pcall(sleeper.wait_alive, sleeper, 0.1)
    assert.is_false(ok)
    assert.matches("waited .* in vain for GET /health/live.*last: ECONNREFUSED", message)
  end)

  it("kills what a test leaves, with its children", function()
    local parent = shell "sleep 60 & echo child=$!; wait"
    local child = tonumber(parent:wait_stdout "child=(%d+)")
    local dir = parent.dir
    proc.cleanup()
    assert.is_nil(uv.fs_stat(dir))
    loop.wait(function()
      -- A killed orphan may be a zombie until init reaps it.
      local status = proc.read_file(("/proc/%d/stat"):format(child))
      return status == nil or status:match "%) (%a)" == "Z"
    end, 5, "the end of the child")
  end)

  it("waits for a record by pattern, by fields and by predicate", function()
    local process = shell [[
      echo 'level=info component=lifecycle phase=db msg="all is \"well\"" duration_ms=12' >&2
      echo 'not a record' >&2
      sleep 0.05
      echo '{"level":"warn","phase":"cache","n":3}' >&2; sleep 60
    ]]
    assert.equal('all is "well"', process:wait_log("phase=db").msg)
    local warned = process:wait_log { level = "warn" }
    assert.equal("cache", warned.phase)
    assert.equal(12, process:wait_log(function(r) return r.phase == "db" end).duration_ms)
    assert.equal(0, #process:find_logs({ phase = "db" }, warned))
  end)

  it("does not wait for a record of a process that has ended", function()
    local process = shell "exit 0"
    local ok, message = pcall(process.wait_log, process, { phase = "db" })
    assert.is_false(ok)
    assert.matches("ended without a log record.*phase=db", message)
  end)
end)

describe("support.logline", function()
  it("keeps what is no record out", function()
    assert.is_nil(logline.parse "")
    assert.is_nil(logline.parse "lua5.4: app.lua:3: oops")
    assert.is_nil(logline.parse "{broken")
    assert.same({ a = "", b = "x=y" }, logline.parse 'a="" b="x=y"')
  end)
end)

describe("support.http_client", function()
  it("reads a body by its length and keeps the connection", function()
    local port = serve "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\nX-A: 2\r\n\r\nok"
    local conn = assert(http.connect(port))
    for _ = 1, 2 do
      local response = assert(conn:request("GET", "/"))
      assert.equal(200, response.status)
      assert.equal("ok", response.body)
      assert.equal("1, 2", response.headers["x-a"])
    end
    conn:close()
  end)

  it("reads a chunked body", function()
    local port = serve("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      .. "3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n")
    assert.equal("abcd", assert(http.get(port, "/")).body)
  end)

  it("reads a body that ends with the connection", function()
    local response = assert(http.get(serve("HTTP/1.0 200 OK\r\n\r\nold", true), "/"))
    assert.equal("old", response.body)
  end)

  it("says that an answer was cut off", function()
    local conn = assert(http.connect(serve("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", true)))
    local response, err, partial = conn:request("GET", "/")
    assert.is_nil(response)
    assert.equal("eof", err)
    assert.matches("ab$", partial)
    conn:close()
  end)

  it("returns that nobody listens", function()
    local response, err = http.get(proc.free_port(), "/")
    assert.is_nil(response)
    assert.equal("ECONNREFUSED", err)
  end)
end)
