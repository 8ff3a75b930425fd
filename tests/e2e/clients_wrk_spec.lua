-- wrk counts what went wrong on its sockets.
local foreign = require "support.foreign"
local proc = require "support.process"

local WRK = foreign.find "wrk"

local function start(argv, url)
  argv[#argv + 1] = url
  return proc.start { program = WRK, argv = argv, manage = false }
end

-- connect, read, write and timeout errors; all 0 when wrk does not speak of any.
local function errors(out)
  local connect, read, write, timeout =
    out:match "Socket errors: connect (%d+), read (%d+), write (%d+), timeout (%d+)"
  return {
    connect = tonumber(connect or 0), read = tonumber(read or 0), write = tonumber(write or 0),
    timeout = tonumber(timeout or 0), status = tonumber(out:match "Non%-2xx[^\n]*: (%d+)" or 0),
  }
end

local NONE = { connect = 0, read = 0, write = 0, timeout = 0, status = 0 }

describe("wrk", function()
  if not WRK then return pending "wrk is not installed (scripts/setup.sh does)" end

  it("has no error, on kept connections and with one for each request", function()
    local _, url = foreign.serve()
    for _, header in ipairs { "X-Nothing: here", "Connection: close" } do
      local process = start({ "-t1", "-c20", "-d1s", "-H", header }, url .. "/echo/a")
      assert.equal(0, (process:wait()))
      local out = process:stdout()
      assert.is_true(tonumber(out:match "(%d+) requests in") > 100, out)
      assert.same(NONE, errors(out))
    end
  end)

  it("sees neither an end nor a reset in a drain, before it is refused", function()
    local app, url = foreign.serve { linger = "300ms" }
    local process = start({ "-t1", "-c20", "-d2s", "--timeout", "5s" }, url .. "/echo/a?ms=5")
    foreign.wait_requests(app, 100)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
    assert.equal(0, (process:wait()))
    local out = process:stdout()
    local seen = errors(out)
    assert.is_true(tonumber(out:match "(%d+) requests in") > 100, out)
    -- A refused connection is an error of its first write. wrk tries again at once.
    assert.is_true(seen.write > 0, out)
    seen.write = 0
    assert.same(NONE, seen)
  end)
end)
