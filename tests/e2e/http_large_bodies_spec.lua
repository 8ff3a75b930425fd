-- Large bodies, both ways: whoever is slow holds up the other, nothing piles up in between, and not
-- a byte is lost, also across a SIGTERM.
local digest = require "openssl.digest"
local http = require "support.http_client"
local loop = require "support.loop"
local memory = require "support.memory"
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s", drain = "20s" } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT"), stream_grace = "10s" }
local written, read = 0, 0
local go = tide.event "go"
local function piece(i) return (("%08d"):format(i)):rep(8192) end -- 64 KiB
server:get("/pieces", function(req, res)
  written = 0
  for i = 1, tonumber(req.query.n) do
    res:write(piece(i))
    written = i
  end
end)
server:get("/whole", function(req)
  local all = {}
  for i = 1, tonumber(req.query.n) do all[i] = piece(i) end
  local whole = table.concat(all)
  written = #all
  return whole
end)
server:get("/written", function() return tostring(written) end)
server:get("/read", function() return tostring(read) end)
server:get("/go", function() go:set(true) end)
server:post("/slow", { body_limit = "200MB" }, function(req)
  local sum = 0
  read = 0
  for data in req:chunks() do
    read = read + #data
    sum = sum + data:byte(1)
    go:wait()
  end
  return tostring(read)
end)
]]

local function start()
  local app = proc.start { script = SCRIPT, env = memory.env }
  app:wait_ready()
  return app
end

-- Memory may grow by queues, garbage that was not collected yet and the allocator's habits: far
-- less than what passes through.
local ROOM = 24 * 1024 * 1024
local PIECES = 800 -- of 64 KiB: 50 MB

local function expected_digest()
  local sum = digest.new "sha256"
  for i = 1, PIECES do sum:update((("%08d"):format(i)):rep(8192)) end
  return sum:final()
end

-- A client that gathers what comes without making one string of it each time.
local function ask(port, path)
  local conn = assert(http.connect(port))
  local parts = {}
  local function on_read(err, data)
    if data then parts[#parts + 1] = data else conn.closed = err or "eof" end
  end
  conn.socket:read_stop()
  conn:send_request("GET", path)
  return conn, parts, on_read
end

local function split(parts)
  local text = table.concat(parts)
  local head, at = text:match "^(.-\r\n)\r\n()"
  return head, text, at
end

local function undo_chunks(text, at)
  local out = {}
  while true do
    local size, from = text:match("^(%x+)\r\n()", at)
    size = tonumber(assert(size, "a chunk is cut off"), 16)
    if size == 0 then
      assert.equal("\r\n", text:sub(from))
      return table.concat(out)
    end
    out[#out + 1] = text:sub(from, from + size - 1)
    assert.equal("\r\n", text:sub(from + size, from + size + 1))
    at = from + size + 2
  end
end

-- Waits until a counter of the script stands still.
local function settled(app, path)
  local last, since = nil, loop.now()
  return loop.wait(function()
    local now = http.get(app.port, path).body
    if now ~= last then last, since = now, loop.now() end
    return loop.now() - since > 0.3 and last
  end, 10, path .. " to stand still")
end

describe("a client that does not read", function()
  it("makes the handler wait, while memory stays flat, and gets all after a SIGTERM", function()
    local app = start()
    http.get(app.port, "/pieces?n=1")
    local before = memory.resident(app.pid)
    local conn, parts, on_read = ask(app.port, "/pieces?n=" .. PIECES)
    local written = tonumber(settled(app, "/written"))
    -- The kernel's buffers of both ends take some megabytes.
    assert.is_true(written < PIECES / 2, "written: " .. written)
    assert.is_true(memory.resident(app.pid) - before < ROOM)
    app:signal "TERM"
    app:wait_log { msg = "lifecycle.state.changed", to = "draining" }
    conn.socket:read_start(on_read)
    local peak, watch = 0, memory.watch(app.pid)
    loop.wait(function()
      peak = watch()
      return conn.closed
    end, 20, "the end of the answer")
    local head, text, at = split(parts)
    assert.matches("Transfer%-Encoding: chunked", head)
    assert.equal(expected_digest(), digest.new("sha256"):final(undo_chunks(text, at)))
    assert.is_true(peak - before < ROOM, ("grown by %d"):format(peak - before))
    assert.equal(0, (app:wait()))
  end)

  it("gets an answer that was returned whole, too", function()
    local app = start()
    local conn, parts, on_read = ask(app.port, "/whole?n=" .. PIECES)
    loop.wait(function()
      return http.get(app.port, "/written").body == tostring(PIECES)
    end, 10, "the answer to be made")
    app:signal "TERM"
    app:wait_log { msg = "lifecycle.state.changed", to = "draining" }
    conn.socket:read_start(on_read)
    loop.wait(function() return conn.closed end, 20, "the end of the answer")
    local head, text, at = split(parts)
    assert.matches("Content%-Length: 52428800\r\n", head)
    assert.equal(expected_digest(), digest.new("sha256"):final(text:sub(at)))
    assert.equal(0, (app:wait()))
  end)
end)

describe("a handler that does not read", function()
  it("makes the client wait, while memory stays flat, and gets all in the end", function()
    local app = start()
    http.get(app.port, "/read")
    local before = memory.resident(app.pid)
    local conn = assert(http.connect(app.port))
    local size, mega = 100 * 1000 * 1000, ("x"):rep(1000000)
    conn:send(("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"):format(size))
    local taken = 0
    local function more() -- the next piece when the kernel has taken the last
      if taken == size then return end
      taken = taken + #mega
      conn.socket:write(mega, function(err) if not err then more() end end)
    end
    more()
    settled(app, "/read")
    local sent = taken
    assert.is_true(sent < size / 2, "sent: " .. sent)
    assert.is_true(memory.resident(app.pid) - before < ROOM)
    assert.equal(204, http.get(app.port, "/go").status)
    local watch = memory.watch(app.pid)
    loop.wait(function() return watch() and #conn.buffer > 0 end, 20, "the answer")
    assert.equal(tostring(size), assert(conn:read_response()).body)
    assert.is_true(watch() - before < ROOM, ("grown by %d"):format(watch() - before))
  end)
end)
