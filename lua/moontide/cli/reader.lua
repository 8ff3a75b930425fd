--- Where the console's lines come from: a terminal, with line editing or without, or a file.
--- While a line is read the rest of the world goes on: `turn` waits for the keyboard and for it.
local native = require "moontide.core.client"
local show = require "moontide.cli.show"
local text_of = require "moontide.text"

local M = {}

---@class moontide.cli.Reader
---@field terminal boolean a person types
---@field editor table|nil of libedit
---@field turn fun(): boolean, string|nil waits: whether there is input, or why to give the line up
---@field complete fun(line: string, cursor: integer): integer|nil, string|nil
---@field pending string what was typed and not yet read
---@field ended boolean|nil there is no more input
---@field partial boolean|nil what was shown last is half a line: no place for a prompt
local Reader = {}
Reader.__index = Reader

local function open_editor(terminal)
  local term = os.getenv "TERM"
  if not terminal or not term or term == "dumb" then return nil end
  local ok, edit = pcall(require, "moontide.core.edit")
  if not ok then return nil, "this moontide is built without it" end
  -- Before libedit looks, so that it is the state it knows between lines.
  native.keys(true)
  local editor, message = edit.open()
  if not editor then native.keys(false) end
  return editor, message
end

---@return moontide.cli.Reader
---@return string|nil message why a person has no line editing
function M.new()
  local terminal = native.is_terminal(0) and native.is_terminal(1)
  local editor, message = open_editor(terminal)
  return setmetatable({
    terminal = terminal, editor = editor, pending = "",
  }, Reader), message
end

-- Takes what there is on stdin.
local function take(self)
  local text = native.read()
  if text then self.pending = self.pending .. text else self.ended = true end
end

-- ---- with line editing --------------------------------------------------------------------------

-- The first character that is pending, taken out; a byte that is no UTF-8 becomes U+FFFD. Nil when
-- there is none, or not all of it.
local function take_key(self)
  local pending = self.pending
  local first = pending:byte()
  if not first then return nil end
  local length = first < 0x80 and 1 or first < 0xe0 and 2 or first < 0xf0 and 3 or 4
  if first >= 0x80 and first < 0xc2 then length = 1 end
  local known, bad = utf8.len(pending:sub(1, length))
  if not known and #pending < length and bad == 1 and #pending < 4 then return nil end
  self.pending = pending:sub(known and length + 1 or 2)
  return known and utf8.codepoint(pending) or 0xfffd
end

-- Whether this key ends "~." at the beginning of a line.
local function is_goodbye(self, key)
  local text = self.editor:line()
  local goodbye = key == 0x2e and text == "~" and self.tilde
  self.tilde = key == 0x7e and text == ""
  return goodbye
end

local function next_key(self)
  while true do
    local key = take_key(self)
    if key and is_goodbye(self, key) then
      self.why = "left"
      return nil
    elseif key then
      return key
    elseif self.ended then
      self.why = "gone" -- Ctrl-D is a key here
      return nil
    end
    local input, why = self.turn()
    if why then
      self.why = why
      return nil
    end
    if input then take(self) end
  end
end

local function edit_line(self, prompt)
  self.why, self.tilde = "gone", false
  self.reading = true
  local line, at_end = self.editor:read(prompt, function() return next_key(self) end, self.complete)
  self.reading = false
  return line, at_end and "end" or self.why
end

-- ---- without ------------------------------------------------------------------------------------

local function take_line(self)
  local line, rest = self.pending:match "^([^\n]*)\n(.*)$"
  if line then
    self.pending = rest
  elseif self.ended and self.pending ~= "" then
    line, self.pending = self.pending, ""
  end
  return line
end

local function plain_line(self, prompt)
  if self.terminal then
    self:show(prompt)
    self.partial = false -- Enter will end it
  end
  while true do
    local line = take_line(self)
    if line == "~." then return nil, "left" end
    if line then return line end
    if self.ended then
      if self.terminal then show.out "\n" end
      return nil, "end"
    end
    local input, why = self.turn()
    if why then
      if self.terminal then show.out "\n" end
      return nil, why
    end
    if input then take(self) end
  end
end

-- ---- both ---------------------------------------------------------------------------------------

--- Reads a line.
---@param prompt string
---@return string|nil line
---@return string|nil why there is none: "end", "left" (by ~.), "gone" (the terminal), or what
--- `turn` said
function Reader:read(prompt)
  if self.partial and self.terminal then self:show "\n" end
  if self.editor then return edit_line(self, prompt) end
  return plain_line(self, prompt)
end

--- Takes in what is typed while a request is under way: it is kept for the next line, and shown
--- there.
---@return string|nil why to leave: "left" or "gone"
function Reader:feed()
  take(self)
  local text = self.pending
  if self.ended then return self.editor and "gone" or "left" end
  if text:find "^~%." or text:find "[\r\n]~%." then return "left" end
end

--- What was typed ahead is not wanted any more: Ctrl-C.
function Reader:forget()
  self.pending = ""
end

--- Shows a text: above the line, if one is being read.
---@param text string without a newline at its end it is half a line
function Reader:show(text)
  if self.reading then
    self.editor:above(text_of.line(text))
  elseif text ~= "" then
    self.partial = text:sub(-1) ~= "\n"
    io.stdout:write(text)
    io.stdout:flush()
  end
end

--- The terminal has another size.
function Reader:resized()
  if not self.editor then return end
  self.editor:resize()
  if self.reading then self.editor:above "" end
end

--- Stops the process, as Ctrl-Z does, and goes on as before.
function Reader:stop()
  if self.reading then self.editor:terminal(false) end
  native.keys(false)
  native.stop()
  if self.editor then native.keys(true) end
  if self.reading then
    self.editor:terminal(true)
    self.editor:above ""
  end
end

---@param line string
function Reader:remember(line)
  if self.editor then self.editor:remember(line) end
end

--- Leaves the terminal as it was found.
function Reader:close()
  if self.editor then self.editor:close() end
  native.keys(false)
end

return M
