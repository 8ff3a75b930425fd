--- Text on its way to a person: colour where it is wanted, and nothing that would command the
--- terminal. What a process prints may come from its clients.
local native = require "moontide.core.client"
local text_of = require "moontide.text"

local M = {}

local function wants_colour()
  local off = os.getenv "NO_COLOR"
  return (not off or off == "") and os.getenv "TERM" ~= "dumb"
end

local terminal = { stdout = native.is_terminal(1), stderr = native.is_terminal(2) }
local colour = wants_colour()

local CODES = { red = "31", dim = "2", bold = "1" }

--- A text in a colour, where `stream` shows one.
---@param stream "stdout"|"stderr"
---@param name "red"|"dim"|"bold"
---@param text string
---@return string
function M.paint(stream, name, text)
  if not (colour and terminal[stream]) or text == "" then return text end
  local body, rest = text:match "^(.-)(\n*)$"
  return ("\27[%sm%s\27[0m%s"):format(CODES[name], body, rest)
end

local function spelled(byte)
  return ("\\x%02x"):format(byte:byte())
end

--- A text for a terminal: control characters but newline and tab are spelled out. As it is when
--- `stream` is none.
---@param stream "stdout"|"stderr"
---@param text string
---@return string
function M.safe(stream, text)
  if not terminal[stream] then return text end
  text = text:gsub("[%z\1-\8\11-\31\127]", spelled)
  -- The same commands in one character of UTF-8.
  return (text:gsub("\xc2([\x80-\x9f])", function(byte) return "\\xc2" .. spelled(byte) end))
end

--- Writes to standard output at once. False: nobody reads it.
---@param text string
---@return boolean
function M.out(text)
  return io.stdout:write(M.safe("stdout", text)) ~= nil and io.stdout:flush() ~= nil
end

--- Writes to standard error.
---@param text string
function M.err(text)
  io.stderr:write(M.safe("stderr", text))
end

--- An error of Lua's, with its traceback.
---@param stream "stdout"|"stderr"
---@param message { message: string, traceback: string|nil }
---@return string
function M.failure(stream, message)
  local failure = text_of.failure(message.message, message.traceback)
  return M.paint(stream, "red", M.safe(stream, failure))
end

return M
