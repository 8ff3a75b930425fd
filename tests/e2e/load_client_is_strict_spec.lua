-- The load that other specs put on servers: it must see every kind of failure, or
-- their "zero failed" says nothing.
local load = require "support.load"
local proc = require "support.process"
local uv = require "luv"

-- A client may leave before its answer is written.
local sigpipe = uv.new_signal()
sigpipe:start("sigpipe")
sigpipe:unref()

local function close(handle)
  if not handle:is_closing() then handle:close() end
end

-- A server on luv: `answer(conn, request, n)` for the n-th request of a connection.
local function serve(answer)
  local server = uv.new_tcp()
  local conns = {}
  assert(server:bind("127.0.0.1", 0))
  assert(server:listen(128, function()
    local conn, buffer, n = uv.new_tcp(), "", 0
    server:accept(conn)
    conns[#conns + 1] = conn
    conn:read_start(function(_, data)
      if not data then return close(conn) end
      buffer = buffer .. data
      local head = buffer:match "^.-\r\n\r\n"
      while head do
        local body = tonumber(head:match "Content%-Length: (%d+)" or 0)
        if #buffer < #head + body then return end
        local request = {
          id = head:match "/echo/([^ ?]+)", post = head:match "^POST", body = buffer:sub(#head + 1),
        }
        request.body = request.body:sub(1, body)
        buffer, n = buffer:sub(#head + body + 1), n + 1
        answer(conn, request, n)
        head = not conn:is_closing() and buffer:match "^.-\r\n\r\n"
      end
    end)
  end))
  return server:getsockname().port, function()
    for _, conn in ipairs(conns) do close(conn) end
    close(server)
  end
end

local function ok(request, more)
  local body = request.post and request.body or request.id
  return ("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s"):format(#body, more or "", body)
end

-- The counts of one kind of client against such a server. Half a second is some
-- hundred requests, or a few on a machine that has better to do.
local function measure(kind, answer, options)
  local port, stop = serve(answer)
  options = options or {}
  options.port, options[kind] = port, 1
  options.for_seconds = options.for_seconds or 0.5
  local argv = { "--to", "127.0.0.1:" .. port, "--for", options.for_seconds, "--timeout",
    options.timeout or 5000, "--" .. kind:gsub("_", "-"), 1, "--think", 5 }
  local code, out, err = proc.run {
    program = os.getenv "MOONTIDE_BUILD" .. "/tests/load", argv = argv, manage = false,
  }
  stop()
  local counts = require "cjson".decode((out:match "{.*}"))
  assert.equal(counts.failed > 0 and 1 or 0, code)
  assert.equal(counts.failed > 0, err:find "^failed kind=" ~= nil)
  return counts[kind], err
end

describe("the load client", function()
  it("is content with a server that answers", function()
    for _, kind in ipairs { "keep_alive", "per_request", "pipelined", "post" } do
      local counts = measure(kind, function(conn, request) conn:write(ok(request)) end)
      assert.is_true(counts.answered > 3, kind)
      assert.equal(0, counts.failed)
      assert.equal(kind ~= "per_request", counts.connections == 1)
    end
  end)

  it("reads chunked answers, and sends again what was pipelined behind a close", function()
    local counts = measure("pipelined", function(conn, request, n)
      local head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
      if n == 5 then head = head .. "Connection: close\r\n" end
      conn:write(("%s\r\n3\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n"):format(head, request.id:sub(1, 3),
        #request.id - 3, request.id:sub(4)))
      if n == 5 then close(conn) end
    end)
    assert.equal(0, counts.failed)
    assert.is_true(counts.resent >= 3)
    assert.is_true(counts.said_close > 0)
  end)

  it("sends a GET again after the end of a kept connection, never a POST", function()
    local function one_answer(conn, request, n)
      if n == 2 then return close(conn) end
      conn:write(ok(request))
    end
    local counts = measure("pipelined", function(conn, request, n)
      if n == 9 then return close(conn) end
      conn:write(ok(request))
    end)
    assert.equal(0, counts.failed)
    assert.is_true(counts.retried > 0)
    counts = measure("post", one_answer)
    assert.is_true(counts.why.eof > 0)
    assert.equal(0, counts.retried)
  end)

  local FAILURES = {
    eof = close,
    reset = function(conn) conn:close_reset() end,
    truncated = function(conn, request, n)
      if n > 1 then return end
      local whole = ok(request)
      conn:write(whole:sub(1, -2), function() close(conn) end)
    end,
    status = function(conn)
      conn:write "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
    end,
    mismatch = function(conn, request)
      conn:write(ok { post = true, body = (request.post and request.body or request.id) .. "x" })
    end,
    timeout = function() end,
  }
  for why, answer in pairs(FAILURES) do
    it("names a failure: " .. why, function()
      for _, kind in ipairs { "keep_alive", "per_request", "pipelined", "post" } do
        local counts, err = measure(kind, answer, { timeout = 100, for_seconds = 0.15 })
        assert.equal(0, counts.answered)
        assert.equal(counts.failed, counts.why[why])
        assert.matches("why=" .. why, err)
      end
    end)
  end

  it("tells no HTTP, and an answer that nobody asked for, from an answer", function()
    local counts = measure("keep_alive", function(conn) conn:write "HTTP/1.1 okay\r\n\r\n" end)
    assert.equal(counts.failed, counts.why.mismatch)
    counts = measure("keep_alive", function(conn, request) conn:write(ok(request):rep(2)) end)
    assert.is_true(counts.why.mismatch > 0)
  end)

  it("counts a refused connection as a failure, unless told otherwise", function()
    local program = os.getenv "MOONTIDE_BUILD" .. "/tests/load"
    local port = proc.free_port()
    local argv = { "--to", "127.0.0.1:" .. port, "--for", "0.2", "--post", 1 }
    local code, out = proc.run { program = program, argv = argv, manage = false }
    assert.equal(1, code)
    assert.matches('"refused":[1-9]', out:match '"post":.*"why":({.*})')

    local other, stop = serve(function(conn, request) conn:write(ok(request)) end)
    for _, word in ipairs { "--to", "127.0.0.1:" .. other, "--retry-refused" } do
      argv[#argv + 1] = word
    end
    code, out = proc.run { program = program, argv = argv, manage = false }
    stop()
    assert.equal(0, code)
    assert.matches('"refused":1,', out:match '"post":.*')
  end)

  it("refuses what it does not understand", function()
    local program = os.getenv "MOONTIDE_BUILD" .. "/tests/load"
    for _, argv in ipairs { {}, { "--to", "here" }, { "--to", "127.0.0.1:80", "--post", "x" },
      { "--to", "127.0.0.1:80" }, { "--what" } } do
      local code, _, err = proc.run { program = program, argv = argv, manage = false }
      assert.equal(64, code)
      assert.matches("usage: load", err)
    end
  end)
end)

describe("the check of executed POSTs", function()
  local function check(answered, executed)
    local dir = proc.temp_dir()
    proc.write_file(dir .. "/answered", answered)
    proc.write_file(dir .. "/executed", executed)
    local clients = setmetatable({ ids = dir .. "/answered" }, getmetatable(
      load.start { port = (serve(function(conn, request) conn:write(ok(request)) end)), post = 1 }))
    return pcall(clients.check_executed, clients, { dir .. "/executed" })
  end

  it("finds what was executed twice, not answered, or not executed", function()
    assert.same({ true, 2 }, { check("a\nb\n", "b\na\n") })
    for what, case in pairs {
      ["executed twice"] = { "a\n", "a\na\n" },
      ["executed, but not answered"] = { "a\n", "a\nb\n" },
      ["answered, but not executed"] = { "a\nb\n", "b\n" },
    } do
      local fine, err = check(case[1], case[2])
      assert.is_false(fine)
      assert.matches(what, err, 1, true)
    end
  end)
end)
