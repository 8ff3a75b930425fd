-- curl: what it says of the connection and of each transfer.
local foreign = require "support.foreign"
local proc = require "support.process"

local function curl(argv)
  local code, out, err = proc.run { program = "/usr/bin/curl", argv = argv, manage = false,
    timeout = 60 }
  return out, code, err
end

local function file_of(bytes)
  local path = proc.temp_dir() .. "/body"
  proc.write_file(path, ("moontide"):rep(bytes // 8))
  return path
end

describe("curl", function()
  it("keeps its connection over answers of every kind", function()
    local _, url = foreign.serve()
    local argv = { "-sS", "-o", "/dev/null", "-w", "%{http_code} %{num_connects}\n" }
    for _, path in ipairs {
      "/echo/a", "/nothing", "/old", "/nowhere", "/chunked", "/big?n=3000000", "/echo/b",
    } do
      argv[#argv + 1] = url .. path
      argv[#argv + 1], argv[#argv + 2] = "-o", "/dev/null"
    end
    local out, code = curl(argv)
    assert.equal(0, code)
    assert.equal("200 1\n204 0\n304 0\n404 0\n200 0\n200 0\n200 0\n", out)
  end)

  it("gets a head without a body, and the next answer on the same connection", function()
    local _, url = foreign.serve()
    local out, code = curl { "-sS", "-I", url .. "/big?n=3000000", url .. "/chunked",
      "--next", "-sS", "-w", " %{num_connects}", url .. "/echo/a" }
    assert.equal(0, code)
    assert.matches("^HTTP/1.1 200 OK\r\n", out)
    assert.matches("Content%-Length: 3000000\r\n", out)
    assert.matches("\r\n\r\na 0$", out)
  end)

  it("speaks HTTP/1.0 and gets whole bodies, never chunks", function()
    local _, url = foreign.serve()
    local out, code = curl { "-sS", "-0", "-i", url .. "/chunked" }
    assert.equal(0, code)
    assert.is_nil(out:find "[Cc]hunked\r\n")
    assert.equal(1000, #out:match "\r\n\r\n(.*)")
    assert.equal("1.0", (curl { "-sS", "-0", url .. "/version" }))
  end)

  it("is told to go on before it sends a large body, and sends it only then", function()
    local _, url = foreign.serve()
    local path = file_of(3000000)
    local out, code, err = curl { "-sS", "-v", "--expect100-timeout", "60", "-H",
      "Content-Type: text/plain", "--data-binary", "@" .. path, url .. "/upload" }
    assert.equal(0, code)
    assert.matches("> Expect: 100%-continue", err)
    assert.matches("< HTTP/1.1 100 Continue", err)
    assert.equal(proc.read_file(path), out)
  end)

  it("sends chunks of a length not known before", function()
    local _, url = foreign.serve()
    local path = file_of(3000000)
    local out, code = curl { "-sS", "-H", "Expect:", "-H", "Transfer-Encoding: chunked",
      "--data-binary", "@" .. path, "-D", "/dev/stderr", url .. "/upload" }
    assert.equal(0, code)
    assert.equal(proc.read_file(path), out)
  end)

  it("reads the refusal of a body that is too large, asked first or not", function()
    local _, url = foreign.serve()
    local path = file_of(15000000)
    for _, expect in ipairs { "Expect: 100-continue", "Expect:" } do
      local out, code, err = curl { "-sS", "-o", "/dev/null", "-w", "%{http_code} %{errormsg}",
        "-H", expect, "--data-binary", "@" .. path, url .. "/small" }
      assert.equal(0, code, err)
      assert.equal("413 ", out)
    end
  end)

  -- Four hundred transfers at two hundred a second, from before the signal to after the
  -- end: first all are answered, then all are refused (error 7 of curl).
  for _, method in ipairs { "GET", "POST" } do
    it("meets no error in a drain, before it is refused: " .. method, function()
      local app, url = foreign.serve { linger = "500ms" }
      local argv = { "-sS", "--rate", "200/s", "-o", "/dev/null", "-w",
        "%{http_code} %{exitcode}\n", url .. "/echo/c[1-400]" }
      if method == "POST" then argv[#argv + 1], argv[#argv + 2] = "-d", "body" end
      local process = proc.start { program = "/usr/bin/curl", argv = argv, manage = false }
      foreign.wait_requests(app, 10)
      app:signal "TERM"
      assert.equal(0, (app:wait()))
      process:wait(30)
      local _, n = process:stdout():gsub("200 0\n", "")
      local _, m = process:stdout():gsub("000 7\n", "")
      assert.equal(("200 0\n"):rep(n) .. ("000 7\n"):rep(m), process:stdout(), process:stderr())
      assert.is_true(n > 20 and m > 0, ("%d answered, %d refused"):format(n, m))
      assert.equal(400, n + m)
    end)
  end
end)
