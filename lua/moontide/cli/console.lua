--- `moontide console`: Lua at the prompt of a running process.
local cli = require "moontide.cli"
local history = require "moontide.cli.history"
local native = require "moontide.core.client"
local readers = require "moontide.cli.reader"
local remote = require "moontide.cli.remote"
local show = require "moontide.cli.show"
local text_of = require "moontide.text"
local words = require "moontide.cli.words"

local M = {}

local HELP = [[
usage: moontide console [NAME|PATH|PID] [options]

Attaches to a running process: Lua and the commands of help(), a prompt, line
editing, completion with TAB, a history. The process serves on meanwhile.

options:
  --timeout T  how long each evaluation may run, default 30s
  --dir DIR    where to look for the process
  -h, --help   print this

keys:
  Ctrl-C       while something runs: asks for an interruption; else drops the line
  Ctrl-D       leaves
  ~.           at the beginning of a line: disconnects at once, whatever runs

]] .. remote.TARGET_HELP .. [[

examples:
  moontide console
  moontide console orders
  moontide console /run/orders/moontide/orders-4242.sock
  echo 'tasks()' | moontide console orders

]] .. remote.CODES_HELP

local SPEC = {
  help = HELP, flags = {}, values = { ["--timeout"] = "timeout", ["--dir"] = "dir" },
}

-- How long the process may think about a completion.
local COMPLETION_TIMEOUT = 2

---@class moontide.cli.Console
---@field connection moontide.cli.Client
---@field found moontide.cli.Found
---@field hello table
---@field reader moontide.cli.Reader
---@field history moontide.cli.History|nil
---@field source string|nil what is not finished yet
---@field failed boolean|nil something has gone wrong so far
---@field reported boolean|nil the process has said that it ends
local Console = {}
Console.__index = Console

-- ---- what the process says ----------------------------------------------------------------------

function Console:say(text)
  self.reader:show(text_of.line(show.safe("stdout", text)))
end

function Console:note(text)
  self.reader:show(show.paint("stdout", "dim", text_of.line(show.safe("stdout", text))))
end

-- To a person it is all one; a file gets only what was asked for.
function Console:complain(text)
  if self.reader.terminal then self.reader:show(text) else io.stderr:write(text) end
end

function Console:event(message)
  if message.event == "state" then
    self:note(("-- %s is %s"):format(self.hello.name or "it", message.state))
  elseif message.event == "report" then
    self.reported = true
    self:note(message.text or "")
  elseif message.text then
    self:say(message.text)
  end
end

-- ---- evaluating ---------------------------------------------------------------------------------

local function on_replies(self)
  return {
    out = function(message) self.reader:show(show.safe("stdout", message.text or "")) end,
    err = function(message) self:complain(show.safe("stderr", message.text or "")) end,
    value = function(message)
      if message.text and message.text ~= "" and message.n ~= 0 then self:say(message.text) end
    end,
    error = function(message) self:complain(show.failure("stderr", message)) end,
    event = function(message) self:event(message) end,
  }
end

-- Runs a source to its end; the outcome.
function Console:evaluate(source)
  local reader = self.reader
  local outcome = self.connection:ask(
    { type = "eval", source = source, timeout = self.timeout },
    {
      on = on_replies(self),
      interrupt = function(n)
        reader:forget()
        self:note(n == 1 and "^C" or ("^C (%d)"):format(n))
      end,
      input = reader.terminal and function() return reader:feed() end or nil,
    })
  if outcome.status == "timeout" and not outcome.error then self:note "-- out of time" end
  return outcome
end

-- ---- reading ------------------------------------------------------------------------------------

-- Waits at the prompt: whether something was typed, or why the line is given up.
function Console:turn()
  if self.signal then return false, "signal" end
  local input, signal = self.connection:turn(nil, true)
  if signal == "INT" then
    return false, "interrupted"
  elseif signal == "WINCH" then
    self.reader:resized()
  elseif signal == "TSTP" then
    self.reader:stop()
  elseif signal and signal ~= "CONT" then
    self.signal = signal
    return false, "signal"
  end
  if self.connection.closed then return false, "closed" end
  return input
end

local function common_prefix(items)
  local prefix = items[1]
  for _, item in ipairs(items) do
    while item:sub(1, #prefix) ~= prefix do prefix = prefix:sub(1, -2) end
  end
  -- Not half a character.
  while prefix ~= "" and not utf8.len(prefix) do prefix = prefix:sub(1, -2) end
  return prefix
end

-- Names in as many columns as the terminal has room for.
local function in_columns(items)
  local widest = 1
  for _, item in ipairs(items) do widest = math.max(widest, utf8.len(item) or #item) end
  local columns = math.max(1, native.columns() // (widest + 2))
  local rows = (#items + columns - 1) // columns
  local lines = {}
  for row = 1, rows do
    local cells = {}
    for column = 0, columns - 1 do
      local item = items[row + column * rows]
      if item then
        cells[#cells + 1] = item .. (" "):rep(widest + 2 - (utf8.len(item) or #item))
      end
    end
    lines[row] = table.concat(cells):gsub("%s+$", "")
  end
  return table.concat(lines, "\n") .. "\n"
end

-- What TAB does to a line: how many characters before the cursor go, and what comes there.
function Console:complete(line, cursor)
  local before = self.source and self.source .. "\n" or ""
  local position = #before + cursor + 1
  local outcome = self.connection:ask(
    { type = "complete", source = before .. line, cursor = position },
    { timeout = COMPLETION_TIMEOUT })
  self.signal = outcome.signal
  local value = outcome.value
  local items, from = value and value.items, value and math.tointeger(value.from)
  if not items or #items == 0 or not from or from <= #before or from > position then return nil end
  local typed = line:sub(from - #before, cursor)
  local text = common_prefix(items)
  if #items > 1 and #text <= #typed then
    self.reader:show(show.safe("stdout", in_columns(items)))
    text = typed
  end
  return utf8.len(typed) or #typed, text
end

function Console:prompt()
  if self.source then return ">> " end
  local state = self.connection.state
  local mark = state and state ~= "ready" and ("(%s)"):format(state) or ""
  local text = ("%s%s>"):format(self.hello.name or self.found.name, mark)
  local painted = show.paint("stdout", "bold", text) .. " "
  if not self.reader.editor then return painted end
  -- For libedit there is no room between two of these; a character has to follow.
  return (painted:gsub("\27%[%d+m", "\1%0\1"))
end

-- Outcomes of an evaluation that end the console as well.
local LEAVES = { left = true, gone = true, closed = true, signal = true }

local function remember(self, line)
  if not self.history then return end
  local kept, message = self.history:add(line)
  if kept then self.reader:remember(line) end
  if message then self:note("no history is kept: " .. message) end
end

-- Works on one line; a text is why the console ends.
function Console:line(text)
  remember(self, text)
  local source = self.source and self.source .. "\n" .. text or text
  if not source:find "%S" then return nil end
  local outcome = self:evaluate(source)
  self.source = nil
  if outcome.need_more then
    self.source = source
  elseif outcome.status ~= "ok" then
    self.failed = true
    self.signal = outcome.signal
    if outcome.status == "interrupted" then return "given up" end
    if LEAVES[outcome.status] then return outcome.status end
  end
end

-- ---- from the first to the last -----------------------------------------------------------------

-- Reads and runs lines; returns why it is over.
function Console:run()
  while true do
    local line, why = self.reader:read(self:prompt())
    if line then why = self:line(line) end
    if why == "interrupted" and self.reader.terminal then
      self.source, why = nil, nil
      self.reader:forget()
    end
    if why then return why end
  end
end

local function code_of(self, why)
  if why == "closed" then
    if self.reported or self.connection.state == "stopped" then return 0 end
    return remote.code(self.found, self.connection, { status = "closed" })
  elseif why == "gone" then -- its signal may come later than its end
    return remote.code(self.found, self.connection, { status = "signal", signal = "HUP" })
  elseif why == "signal" or why == "interrupted" then
    return remote.code(self.found, self.connection, { status = why, signal = self.signal })
  elseif why == "left" or why == "given up" then
    self:note "-- disconnected"
    return why == "left" and 0 or remote.INTERRUPTED
  elseif self.source and not self.reader.terminal then
    remote.complain "the input ends in the middle of a statement"
    return remote.ERROR
  end
  return self.failed and not self.reader.terminal and remote.ERROR or 0
end

local function greet(self, editing)
  if not self.reader.terminal then return end
  local hello = self.hello
  self:note(("%s, process %s, %s; moontide %s%s"):format(hello.name or self.found.name,
    hello.pid or self.found.pid or "?", hello.state or "?", hello.version or "?",
    hello.policy == "inspect" and "; you may look, not change" or ""))
  self:note "help() says what there is; Ctrl-D leaves, ~. disconnects"
  if editing then self:note("no line editing: " .. editing) end
end

local function open_history(self)
  if not self.reader.terminal then return end
  local message
  self.history, message = history.open(function(line) self.reader:remember(line) end)
  if message then self:note("no history is kept: " .. message) end
end

---@param args string[]
---@return integer code
function M.main(args)
  local values, code = words.read(SPEC, args)
  if not values then return code end
  local timeout, problem = words.seconds(values.timeout, "--timeout")
  if problem then return cli.wrong(problem) end
  if values[2] then
    return cli.wrong(("console takes one process, not also %q"):format(values[2]))
  end
  local connection, hello, found = remote.open(values[1], values)
  if not connection then return hello end
  local reader, editing = readers.new()
  local self = setmetatable({
    connection = connection, hello = hello, found = found, reader = reader, timeout = timeout,
  }, Console)
  connection.on_event = function(message) self:event(message) end
  connection.silence.say = function(text) self:note("-- " .. text) end
  reader.turn = function() return self:turn() end
  reader.complete = function(line, cursor) return self:complete(line, cursor) end
  greet(self, editing)
  open_history(self)
  code = code_of(self, self:run())
  reader:close()
  connection:close()
  return code
end

return M
