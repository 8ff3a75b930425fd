-- After tens of thousands of requests and thousands of connections, ended in all ways, a process
-- holds no more descriptors and hardly more memory than before (luvit/luvit#356).
local uv = require "luv"
local http = require "support.http_client"
local http_app = require "support.http_app"
local loop = require "support.loop"
local memory = require "support.memory"

-- How many of each kind: on kept connections, and with a connection for each. With the sanitizers
-- each takes several times as long.
local SANITIZED = os.getenv "MOONTIDE_PRELOAD"
local FULL = tonumber(os.getenv "TIDE_REQUESTS")
local KEPT = FULL or (SANITIZED and 40000 or 100000)
local CLOSED = FULL or (SANITIZED and 1000 or 10000)

local GET = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
local POST = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
  .. "5;a=b\r\nhello\r\n0\r\nT: x\r\n\r\n"
local SLOW = "GET /slow?ms=20 HTTP/1.1\r\nHost: a\r\n\r\n"
local BATCH = 100

local function descriptors(pid)
  local count = 0
  local entries = uv.fs_scandir(("/proc/%d/fd"):format(pid))
  while entries and uv.fs_scandir_next(entries) do count = count + 1 end
  return count
end

-- `count` requests on one connection, a hundred at a time.
local function keep_alive(port, count)
  local conn = assert(http.connect(port))
  for _ = 1, count // BATCH do
    assert(conn:send(GET:rep(BATCH)))
    for _ = 1, BATCH do assert.equal("hello", assert(conn:read_response()).body) end
  end
  conn:close()
end

local function one_each(port, count)
  for _ = 1, count do assert.equal("hello", assert(http.get(port, "/hello")).body) end
end

-- Leaves at each byte of the request, its last one included, with RST and with FIN.
local function leave(port, request)
  for i = 1, #request do
    for _, way in ipairs { "reset", "close" } do
      local conn = assert(http.connect(port))
      conn:send(request:sub(1, i))
      conn[way](conn)
    end
  end
end

describe("a process", function()
  it("is as it was after requests in all ways, and clients that left at any byte", function()
    local app = http_app.start { linger = "0s" }
    local function round()
      for _ = 1, KEPT // 10000 do keep_alive(app.port, 5000) end
      one_each(app.port, CLOSED // 2)
      for _, request in ipairs { GET, POST, SLOW } do leave(app.port, request) end
    end
    round() -- what grows once, has grown
    local before, open = memory.resident(app.pid), descriptors(app.pid)
    round()
    local settled = loop.try(function() return descriptors(app.pid) <= open end, 5)
    assert.is_true(settled, "descriptors: " .. descriptors(app.pid) .. ", before " .. open)
    -- A round of leaks of one exchange for each connection would be 10 MB, for each request 100 MB.
    local grown = memory.resident(app.pid) - before
    if not SANITIZED then -- the sanitizer keeps what was freed for a while
      assert.is_true(grown < 4 << 20, "grown by " .. grown)
    end
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)
end)
