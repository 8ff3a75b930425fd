--- A connection to a running process: requests, their replies and their end. One at a time is
--- asked, and meanwhile Ctrl-C, the keyboard and the process's watchdog are heard.
local json = require "moontide.json"
local native = require "moontide.core.client"

local M = {}

-- How long a process may take to say who it is when only its state is wanted.
local STATE_TIMEOUT = 0.5
-- How long to try when as many clients as it lets wait are waiting already.
local CONNECT_TIMEOUT = 2

---@class moontide.cli.Outcome
---@field status string of `done`; or "closed", "late", "interrupted", "left", "signal"
---@field ms number|nil
---@field signal string|nil
---@field [string] table the last reply of a type

---@class moontide.cli.Client
---@field path string
---@field closed boolean|nil the process has closed the connection
---@field refused string|nil and has said why
---@field state string|nil the last that was heard of it
---@field on_event fun(message: table)
local Client = {}
Client.__index = Client

local function connect(path)
  local deadline = native.now() + CONNECT_TIMEOUT
  repeat
    local connection, name, message = native.connect(path)
    if connection then return connection end
    if name ~= "EAGAIN" then return nil, ("%s: %s"):format(path, message) end
    native.wait(0.05, false)
  until native.now() >= deadline
  return nil, ("%s: the process does not accept connections"):format(path)
end

--- Connects; sends nothing.
---@param path string
---@return moontide.cli.Client|nil
---@return string|nil message
function M.open(path)
  local connection, message = connect(path)
  if not connection then return nil, message end
  return setmetatable({
    path = path, connection = connection, asked = 0, pieces = {}, replies = {},
    on_event = function() end, silence = require("moontide.cli.silence").new(path),
  }, Client)
end

--- The state of a process, if it says so soon.
---@param path string
---@return string|nil
function M.state_of(path)
  local client = M.open(path)
  if not client then return nil end
  local hello = client:ask({ type = "hello", want = "console" }, { timeout = STATE_TIMEOUT }).hello
  client:close()
  return hello and hello.state
end

-- ---- messages -----------------------------------------------------------------------------------

local function hear(self, line)
  local message = json.decode(line)
  if type(message) ~= "table" then return end
  if message.type == "event" and message.event == "state" then self.state = message.state end
  local reply = message.id ~= nil and self.replies[message.id]
  if reply then
    reply(message)
  elseif message.type == "refused" or message.type == "error" then
    self.refused = message.message
  elseif message.event == "closed" then
    self.refused = message.text
  elseif message.type == "event" then
    self.on_event(message)
  end
end

-- Takes in what has come, line by line.
local function receive(self)
  local text = self.connection:receive()
  if not text then
    self.closed = true
    return
  end
  local pieces = self.pieces
  for piece, newline in text:gmatch "([^\n]*)(\n?)" do
    if piece ~= "" then pieces[#pieces + 1] = piece end
    if newline ~= "" then
      local line = table.concat(pieces)
      for i = #pieces, 1, -1 do pieces[i] = nil end
      hear(self, line)
    end
  end
end

--- Sends a request. `on_reply` hears each message with its id.
---@param message table
---@param on_reply fun(message: table)
---@return integer id
function Client:send(message, on_reply)
  self.asked = self.asked + 1
  message.id = self.asked
  self.replies[message.id] = on_reply
  self.connection:send(json.encode(message) .. "\n")
  return message.id
end

--- Waits for whatever comes first, and hears messages.
---@param seconds number|nil nil: as long as it takes
---@param stdin boolean
---@return boolean input whether something can be read from stdin
---@return string|nil signal
function Client:turn(seconds, stdin)
  local conns = {}
  if not self.closed then conns[1] = self.connection end
  local watchdog = self.silence.connection
  if watchdog then conns[#conns + 1] = watchdog end
  local ready = table.pack(native.wait(seconds, stdin, table.unpack(conns)))
  for i, connection in ipairs(conns) do
    if ready[i + 2] and connection == watchdog then
      self.silence:receive()
    elseif ready[i + 2] then
      receive(self)
      self.silence:heard()
    end
  end
  return ready[1], ready[2]
end

-- ---- asking -------------------------------------------------------------------------------------

local LEAVES = { TERM = true, HUP = true, QUIT = true }

-- What a signal does to a request that is under way; a text ends the waiting.
local function signalled(self, signal, id, options, outcome)
  if LEAVES[signal] then
    outcome.signal = signal
    return "signal"
  elseif signal == "TSTP" then
    native.stop()
  elseif signal == "INT" then
    outcome.interrupts = (outcome.interrupts or 0) + 1
    local stuck = self.silence:interrupt()
    if outcome.interrupts > 3 or not (options.interrupt or stuck) then return "interrupted" end
    if not options.interrupt then return nil end
    options.interrupt(outcome.interrupts)
    self:send({ type = "interrupt", of = id }, function() end)
  end
end

local function soonest(a, b)
  return a and b and math.min(a, b) or a or b
end

-- One turn of waiting for the end of a request.
local function wait_once(self, id, options, outcome, deadline)
  local now = native.now()
  if deadline and now >= deadline then
    outcome.status = "late"
    return
  end
  local seconds = soonest(deadline and deadline - now, self.silence:look(now))
  local input, signal = self:turn(seconds, options.input ~= nil)
  if outcome.status then return end
  if signal then outcome.status = signalled(self, signal, id, options, outcome) end
  if input and options.input then outcome.status = outcome.status or options.input() end
  if options.watch then outcome.status = outcome.status or options.watch() end
  if self.closed and not outcome.status then outcome.status = "closed" end
end

---@class moontide.cli.AskOptions
---@field on table<string, fun(message: table)>|nil replies, by type, as they come
---@field timeout number|nil seconds until the outcome is "late"
---@field interrupt fun(n: integer)|nil Ctrl-C asks for an interruption, and this says so; without
--- it the outcome is "interrupted" at once, unless the loop is stuck. So it is at the fourth.
---@field watch (fun(): string|nil)|nil asked after each turn; a text is the outcome
---@field input (fun(): string|nil)|nil there is something to read from stdin; a text is the outcome

--- Asks, and waits for the end.
---@param message table
---@param options moontide.cli.AskOptions|nil
---@return moontide.cli.Outcome
function Client:ask(message, options)
  options = options or {}
  local outcome, on = {}, options.on or {}
  local deadline = options.timeout and native.now() + options.timeout
  local id = self:send(message, function(reply)
    local fn = on[reply.type]
    outcome[reply.type] = reply
    if reply.type == "done" then
      outcome.status, outcome.ms = reply.status, reply.ms
    elseif fn then
      fn(reply)
    end
  end)
  self.silence:begin(native.now())
  while not outcome.status do wait_once(self, id, options, outcome, deadline) end
  self.silence:finish()
  self.replies[id] = nil
  return outcome
end

--- Closes the connection, and that to the watchdog; what is asked gets no answer.
function Client:close()
  self.connection:close()
  self.silence:finish()
  self.closed = true
end

return M
