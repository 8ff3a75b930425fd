-- After tens of thousands of requests and thousands of connections, ended in all ways, a process
-- holds no more descriptors and hardly more memory than before (luvit/luvit#356).
local uv = require "luv"
local http = require "support.http_client"
local http_app = require "support.http_app"
local loop = require "support.loop"
local memory = require "support.memory"

local GET = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
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

-- Leaves at a byte of the request, with RST or FIN.
local function leave(port, count)
  for i = 1, count do
    local conn = assert(http.connect(port))
    conn:send(GET:sub(1, i % #GET + 1))
    if i % 2 == 0 then conn:reset() else conn:close() end
  end
end

describe("a process", function()
  it("is as it was after 40,000 requests and 1,500 connections", function()
    local app = http_app.start { linger = "0s" }
    local function round()
      for _ = 1, 4 do keep_alive(app.port, 5000) end
      one_each(app.port, 500)
      leave(app.port, 250)
    end
    round() -- what grows once, has grown
    local before, open = memory.resident(app.pid), descriptors(app.pid)
    round()
    local settled = loop.try(function() return descriptors(app.pid) <= open end, 5)
    assert.is_true(settled, "descriptors: " .. descriptors(app.pid) .. ", before " .. open)
    -- A round of leaks of one byte for each request would be 20 KB, of one exchange 40 MB.
    local grown = memory.resident(app.pid) - before
    if not os.getenv "MOONTIDE_PRELOAD" then -- the sanitizer keeps what was freed for a while
      assert.is_true(grown < 4 << 20, "grown by " .. grown)
    end
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)
end)
