-- A connection given to another protocol: as raw bytes, and as WebSocket (examples/websocket).
local http = require "support.http_client"
local loop = require "support.loop"
local memory = require "support.memory"
local proc = require "support.process"

local source = os.getenv "MOONTIDE_SOURCE" or "."

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = { linger = "0s", drain = "10s" } }
local server = tide.http.listen { port = tonumber(os.getenv "PORT"),
  stream_grace = os.getenv "GRACE" or "500ms" }
local written = 0
local function serve(path, fn)
  server:get(path, { stream = true }, function(req, res)
    res:header("X-Route", path)
    return res:upgrade("raw", fn)
  end)
end
serve("/echo", function(stream)
  while true do
    local data, why = stream:read()
    if not data then return stream:write("<" .. why .. ">") end
    stream:write(data)
  end
end)
serve("/exact", function(stream)
  local a, b = stream:read(3), stream:read(5)
  local _, why, rest = stream:read(4)
  stream:write(("%s|%s|%s|%s"):format(a, b, why, rest))
end)
serve("/shut", function(stream)
  stream:write "bye"
  stream:shutdown()
  tide.log.info("after", { data = stream:read(5) })
end)
serve("/flood", function(stream)
  while stream:write(("x"):rep(65536)) do written = written + 1 end
end)
serve("/patient", function(stream) -- its client says nothing
  local function poll(times)
    for _ = 1, times do pcall(tide.timeout, 0.0005, stream.read, stream) end
    collectgarbage()
    return collectgarbage "count" * 1024
  end
  -- First as many as are remembered when they have ended (task/ended.lua).
  local before, times = poll(1100), 1000
  stream:write(("%d bytes\n"):format((poll(times) - before) // times))
end)
serve("/error", function(stream) stream:write "half" tide.sleep(0.05) error "broken" end)
serve("/closer", function(stream)
  tide.spawn(function() tide.sleep(0.05) stream:close() end)
  tide.log.info("closer", { why = select(2, stream:read()) })
end)
serve("/deaf", function(stream)
  local mark <close> = setmetatable({}, { __close = function() tide.log.info "deaf closed" end })
  stream:write "hello"
  tide.sleep(3600)
end)
server:get("/plain", function(req) return "plain " .. tostring(req.upgrade_to) end)
server:post("/plain", function(req) return tostring(req.upgrade_to) .. req:body() end)
server:post("/up", function(req, res) return res:upgrade("raw", print) end)
server:get("/written", function() return tostring(written) end)
server:get("/bad", function(req, res)
  return select(2, pcall(res.upgrade, res, "", print)) .. select(2, pcall(res.upgrade, res, "raw"))
    .. select(2, pcall(function() res:upgrade "raw" end))
end)
]]

local function start(env)
  env = env or {}
  for name, value in pairs(memory.env) do env[name] = value end
  local app = proc.start { script = SCRIPT, env = env }
  app:wait_ready()
  return app
end

local ASK = "GET %s HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: %s\r\n%s\r\n"

-- Asks for another protocol, with `more` behind the head; returns once the head of the answer is
-- there, and leaves in the buffer what came behind it.
local function upgrade(app, path, more, protocol, fields)
  local conn = assert(http.connect(app.port))
  conn:send(ASK:format(path, protocol or "raw", fields or "") .. (more or ""))
  local head = loop.wait(function() return conn.buffer:match "^(.-\r\n)\r\n" end, 10, "a head")
  conn.buffer = conn.buffer:sub(#head + 3)
  return conn, head
end

local function wait_for(conn, text)
  loop.wait(function() return conn.buffer:find(text, 1, true) or conn.closed end, 10, text)
  assert.is_truthy(conn.buffer:find(text, 1, true))
end

describe("res:upgrade", function()
  it("hands over the bytes behind the head and all that follow, until the client ends", function()
    local app = start()
    local conn, head = upgrade(app, "/echo", "GET /plain HTTP/1.1\r\n\r\n")
    assert.matches("^HTTP/1.1 101 Switching Protocols\r\n", head)
    assert.matches("Upgrade: raw\r\n", head)
    assert.matches("X%-Route: /echo\r\n", head)
    assert.matches("Connection: Upgrade\r\n", head)
    assert.is_nil(head:find "Content%-Length" or head:find "Transfer%-Encoding")
    wait_for(conn, "GET /plain HTTP/1.1\r\n\r\n")
    conn:send "more"
    wait_for(conn, "more")
    conn:half_close()
    loop.wait(function() return conn.closed end, 10)
    assert.matches("more<eof>$", conn.buffer)
  end)

  it("keeps nothing of reads that gave up", function()
    local conn = upgrade(start(), "/patient")
    wait_for(conn, " bytes\n")
    assert.is_true(tonumber(conn.buffer:match "^(-?%d+)") < 40, conn.buffer) -- a waiter has more
  end)

  it("reads as many bytes as are asked for, and gives what is left at the end", function()
    local app = start()
    local conn = upgrade(app, "/exact", "ab")
    conn:send "cdefghij"
    conn:half_close()
    loop.wait(function() return conn.closed end, 10)
    assert.equal("abc|defgh|eof|ij", conn.buffer)
  end)

  it("may end our half first, and is woken by its own close", function()
    local app = start()
    local conn = upgrade(app, "/shut")
    wait_for(conn, "bye")
    assert.equal("eof", conn:wait_close())
    conn:send "later"
    assert.equal("later", app:wait_log({ msg = "after" }).data)
    local closer = upgrade(app, "/closer")
    assert.equal("eof", closer:wait_close())
    assert.equal("closed", app:wait_log({ msg = "closer" }).why)
  end)

  it("waits for a slow client, with flat memory", function()
    local app = start()
    local before = memory.resident(app.pid)
    local conn = assert(http.connect(app.port))
    conn.socket:read_stop()
    conn:send(ASK:format("/flood", "raw", ""))
    local last
    loop.wait(function() -- until the kernel's buffers are full
      local now = http.get(app.port, "/written").body
      loop.turn_for(0.2)
      local still = now == last
      last = now
      return still and tonumber(now) > 0
    end, 10, "the handler to wait")
    assert.is_true(memory.resident(app.pid) - before < 16 * 1024 * 1024)
    conn:reset()
  end)

  it("resets where the handler fails", function()
    local app = start()
    local conn = upgrade(app, "/error")
    assert.equal("ECONNRESET", conn:wait_close())
    assert.matches("broken", app:wait_log({ msg = "handler failed" }).error)
  end)

  it("is refused to who does not ask, asks for another, or sends a body: plain HTTP", function()
    local app = start()
    local response = http.get(app.port, "/echo")
    assert.equal(426, response.status)
    assert.equal("raw", response.headers.upgrade)
    local _, head = upgrade(app, "/echo", "", "websocket")
    assert.matches("^HTTP/1.1 426 ", head)
    local conn = assert(http.connect(app.port))
    local fields = { Connection = "Upgrade", Upgrade = "raw" }
    assert.equal(426, conn:request("POST", "/up", { headers = fields, body = "xy" }).status)
    assert.equal("nilxy", conn:request("POST", "/plain", { headers = fields, body = "xy" }).body)
    local refused = http.get(app.port, "/bad").body
    assert.matches("a protocol is wanted.*a function is wanted, not a nil", refused)
    assert.matches("%.lua:%d+: res:upgrade: a function is wanted, not a nil$", refused)
  end)

  it("is not asked for by an upgrade that the route ignores", function()
    local app = start()
    local conn, head = upgrade(app, "/plain", "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n")
    assert.matches("^HTTP/1.1 200 ", head)
    wait_for(conn, "plain raw")
    wait_for(conn, "plain nil")
  end)

  it("counts apart from requests, and ends at a drain's grace, also asked for twice", function()
    local app = start()
    local conn = upgrade(app, "/deaf")
    wait_for(conn, "hello")
    local text = http.get(app.manage_port, "/metrics").body
    assert.matches("\nmoontide_http_requests_in_flight[^\n]* 0\n", text)
    assert.matches('\nmoontide_http_connections{state="upgraded"} 1\n', text)
    app:signal "TERM"
    app:signal "TERM"
    assert.equal("eof", conn:wait_close())
    assert.equal(0, (app:wait()))
    app:wait_log "deaf closed"
    app:wait_log { msg = "stream closed", path = "/deaf" }
  end)
end)

-- ---- WebSocket --------------------------------------------------------------------------------

local KEY = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

-- A client's frame, masked.
local function frame(first, data)
  local mask, out = { 1, 2, 3, 250 }, {}
  for i = 1, #data do out[i] = string.char(data:byte(i) ~ mask[(i - 1) % 4 + 1]) end
  local length = #data < 126 and string.char(0x80 | #data) or (">BI2"):pack(0x80 | 126, #data)
  if #data > 65535 then length = (">BI8"):pack(0x80 | 127, #data) end
  return string.char(first) .. length .. string.char(table.unpack(mask)) .. table.concat(out)
end

describe("WebSocket", function()
  local function websocket()
    local app = proc.start { script = source .. "/examples/websocket/app.lua" }
    app:wait_ready()
    return app
  end

  local function connect(app)
    return upgrade(app, "/ws", "", "websocket", KEY)
  end

  it("is answered as the RFC says, and echoes", function()
    local app = websocket()
    local conn, head = connect(app)
    assert.matches("Sec%-WebSocket%-Accept: s3pPLMBiTxaQ9kYGzzhZRbK%+xOo=\r\n", head)
    conn:send(frame(0x81, "Hello"))
    wait_for(conn, "\x81\x05Hello")
    conn:send(frame(0x82, ("x"):rep(300)))
    wait_for(conn, "\x82\x7e\x01\x2c" .. ("x"):rep(300))
    -- a message in fragments, with a ping between them
    conn:send(frame(0x01, "Hel") .. frame(0x89, "you?") .. frame(0x80, "lo"))
    wait_for(conn, "\x8a\x04you?\x81\x05Hello")
    conn:send(frame(0x88, "\x03\xe8"))
    assert.equal("eof", conn:wait_close())
    assert.matches("\x88\x02\x03\xe8$", conn.buffer)
  end)

  it("ends what breaks its rules, with the code for it", function()
    local app = websocket()
    for bytes, code in pairs {
      ["\x81\x01a"] = 1002, -- not masked
      [frame(0x83, "a")] = 1002, -- no such opcode
      [frame(0xc1, "a")] = 1002, -- a bit of an extension that was not agreed on
      [frame(0x80, "a")] = 1002, -- continues nothing
      [frame(0x09, "a")] = 1002, -- a ping in fragments
      [frame(0x88, "\x03")] = 1002, -- half a code
      [frame(0x81, "\xff")] = 1007, -- no UTF-8
      ["\x81\xff\0\0\0\0\1\0\0\0" .. "mask"] = 1009, -- 16 MiB
    } do
      local conn = connect(app)
      conn:send(bytes)
      assert.equal("eof", conn:wait_close())
      assert.equal((">BBI2"):pack(0x88, 2, code), conn.buffer)
    end
    assert.equal(426, http.get(app.port, "/ws").status)
    local _, head = upgrade(app, "/ws", "", "websocket", "Sec-WebSocket-Version: 13\r\n")
    assert.matches("^HTTP/1.1 400 ", head)
  end)

  it("says 1001 in a drain, then closes, whether the client answers or not", function()
    local app = websocket()
    local polite, rude = connect(app), connect(app)
    app:signal "TERM"
    wait_for(polite, "\x88\x02\x03\xe9")
    polite:send(frame(0x88, "\x03\xe9"))
    assert.equal("eof", polite:wait_close(5))
    assert.equal("eof", rude:wait_close(5)) -- two seconds for its answer, in an example
    assert.equal("\x88\x02\x03\xe9", rude.buffer)
    assert.equal(0, (app:wait()))
    assert.is_true(app.exited_at - app.signalled_at < 5)
  end)

  it("works with a client that others wrote", function()
    local app = websocket()
    local python = proc.start { program = "/usr/bin/python3", argv = { "-c", [[
import asyncio, sys, websockets
async def main():
    async with websockets.connect(f"ws://127.0.0.1:{sys.argv[1]}/ws") as ws:
        await ws.send("hello")
        assert await ws.recv() == "hello"
        await ws.send(b"x" * 200000)
        assert len(await ws.recv()) == 200000
        await asyncio.wait_for(await ws.ping(), 5)
        print("ready", flush=True)
        try:
            await ws.recv()
        except websockets.ConnectionClosed as e:
            print("closed", e.code)
asyncio.run(main())]], app.port } }
    python:wait_stdout "ready"
    app:signal "TERM"
    assert.equal(0, (python:wait()))
    assert.matches("closed 1001", python:stdout())
    assert.equal(0, (app:wait()))
  end)
end)
