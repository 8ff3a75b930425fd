--- The server side of RFC 6455 on an upgraded connection: handshake, frames, pings, closing.
---
---     server:get("/ws", { stream = true }, function(req, res)
---       return websocket.serve(req, res, function(ws)
---         for message, kind in ws:messages() do ws:send(message, kind) end
---       end)
---     end)
---
--- In a drain every client is told 1001, "going away", and gets a moment to say goodbye.
local digest = require "openssl.digest" -- Debian: lua-luaossl
local tide = require "moontide"

local M = {}

local GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
local CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
local KINDS = { [TEXT] = "text", [BINARY] = "binary" }
local MESSAGE_MAX = 1 << 20

---@class websocket.Socket
---@field stream moontide.UpgradedStream
---@field closing boolean|nil our close frame is out
local Socket = {}
Socket.__index = Socket

-- ---- bytes ------------------------------------------------------------------------------------

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

local function base64(bytes)
  local text = bytes:gsub("..?.?", function(group)
    local a, b, c = group:byte(1, 3)
    local n = a << 16 | (b or 0) << 8 | (c or 0)
    local letters = {}
    for i = 1, 4 do
      local at = n >> (24 - 6 * i) & 63
      letters[i] = i <= #group + 1 and ALPHABET:sub(at + 1, at + 1) or "="
    end
    return table.concat(letters)
  end)
  return text
end

--- The answer to a client's Sec-WebSocket-Key.
---@param key string
---@return string
function M.accept(key)
  return base64(digest.new("sha1"):final(key .. GUID))
end

-- Each byte with its byte of the mask, eight at a time.
local function unmask(data, mask)
  local wide = ("<I8"):unpack(mask .. mask)
  local padded = data .. ("\0"):rep(-#data % 8)
  local out = {}
  for at = 1, #padded, 8 do
    out[#out + 1] = ("<I8"):pack(("<I8"):unpack(padded, at) ~ wide)
  end
  return table.concat(out):sub(1, #data)
end

local function frame(opcode, data)
  local length = #data
  local first = 0x80 | opcode
  if length < 126 then return string.char(first, length) .. data end
  if length < 65536 then return (">BBI2"):pack(first, 126, length) .. data end
  return (">BBI8"):pack(first, 127, length) .. data
end

-- ---- frames of the client ---------------------------------------------------------------------

-- What ends a connection: { code }. Raised where it is found, sent where frames are read.
local function violation(code)
  error({ close = code }, 0)
end

local function read(self, n)
  if n == 0 then return "" end
  local data, why = self.stream:read(n)
  if not data then error({ gone = why }, 0) end
  return data
end

local function read_length(self, short)
  if short < 126 then return short end
  if short == 126 then return (">I2"):unpack(read(self, 2)) end
  local length = (">i8"):unpack(read(self, 8))
  return length < 0 and violation(1002) or length
end

-- One frame: opcode, whether it is the last of its message, data.
local function read_frame(self, room)
  local first, second = read(self, 2):byte(1, 2)
  local opcode, final = first & 15, first & 0x80 ~= 0
  if first & 0x70 ~= 0 or second & 0x80 == 0 then violation(1002) end
  local length = read_length(self, second & 0x7f)
  local control = opcode >= CLOSE
  if control and (length > 125 or not final) then violation(1002) end
  if not control and length > room then violation(1009) end
  local mask = read(self, 4)
  return opcode, final, unmask(read(self, length), mask)
end

local function check_close(data)
  if #data == 0 then return 1000 end
  if #data == 1 or not utf8.len(data, 3) then violation(1002) end
  local code = (">I2"):unpack(data)
  local known = code >= 1000 and code <= 1011 and not (code >= 1004 and code <= 1006)
  if not (known or code >= 3000 and code <= 4999) then violation(1002) end
  return code
end

local function control(self, opcode, data)
  if opcode == PING then
    if not self.closing then self.stream:write(frame(PONG, data)) end
  elseif opcode == CLOSE then
    violation(check_close(data))
  elseif opcode ~= PONG then
    violation(1002)
  end
end

-- A whole message, over the frames it comes in; control frames may come between them.
local function read_message(self)
  local kind, parts, size = nil, {}, 0
  while true do
    local opcode, final, data = read_frame(self, MESSAGE_MAX - size)
    if opcode >= CLOSE then
      control(self, opcode, data)
    else
      if (opcode == CONTINUATION) ~= (kind ~= nil) or opcode > BINARY then violation(1002) end
      kind, size = kind or opcode, size + #data
      parts[#parts + 1] = data
      if final then return table.concat(parts), kind end
    end
  end
end

-- ---- what a handler uses ----------------------------------------------------------------------

--- Sends a message; awaits while the client is slow.
---@async
---@param data string
---@param kind "text"|"binary"|nil default "text"
---@return boolean|nil ok
---@return string|nil why
function Socket:send(data, kind)
  if self.closing then return nil, "closed" end
  return self.stream:write(frame(kind == "binary" and BINARY or TEXT, data))
end

--- Begins to close; the client's answer ends the messages.
---@async
---@param code integer 1000: done; 1001: going away
---@param text string|nil
function Socket:close(code, text)
  if self.closing then return end
  self.closing = true
  self.stream:write(frame(CLOSE, (">I2"):pack(code) .. (text or "")))
end

--- The next message; nil when the connection ends. What the client does wrong ends it.
---@async
---@return string|nil message
---@return string|integer kind "text", "binary"; behind nil the code that it was closed with
function Socket:receive()
  local ok, message, kind = pcall(read_message, self)
  if ok and kind == TEXT and not utf8.len(message) then ok, message = false, { close = 1007 } end
  if ok then return message, KINDS[kind] end
  if type(message) ~= "table" or not (message.close or message.gone) then error(message, 0) end
  if message.close then self:close(message.close) end
  return nil, message.close or 1006
end

--- Iterates over the messages until the connection ends.
---@async
function Socket:messages()
  return function() return self:receive() end
end

-- Says goodbye when the process drains; who does not answer in two seconds is left.
local function watch_drain(ws)
  return tide.spawn(function()
    ws.stream.draining:wait()
    ws:close(1001)
    tide.sleep("2s")
    ws.stream:close()
  end)
end

--- Answers the handshake and runs `fn` with the socket; the connection is closed behind it.
---@async
---@param req moontide.Request
---@param res moontide.Response
---@param fn fun(ws: websocket.Socket)
function M.serve(req, res, fn)
  local key = req.headers["sec-websocket-key"] or ""
  if req.upgrade_to and not (key:match "^[%w+/]+==$" and #key == 24) then
    return 400, "Sec-WebSocket-Key must be 16 bytes in base64\n"
  elseif req.upgrade_to and req.headers["sec-websocket-version"] ~= "13" then
    return 426, "version 13 is spoken here\n", { ["Sec-WebSocket-Version"] = "13" }
  end
  res:header("Sec-WebSocket-Accept", M.accept(key))
  res:upgrade("websocket", function(stream)
    local ws = setmetatable({ stream = stream }, Socket)
    local watcher = watch_drain(ws)
    fn(ws)
    ws:close(1000)
    watcher:cancel "the connection has ended"
  end)
end

return M
