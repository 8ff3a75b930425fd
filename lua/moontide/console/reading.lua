--- Reading: from what somebody types to a chunk.

local M = {}

---@class moontide.console.Unread
---@field message string what the parser says
---@field incomplete boolean more input could make it whole

-- Named after itself, so that tracebacks show what was typed: [string "while true do end"]:1. A "="
-- or "@" in front would be taken for a name that is no text.
local function chunk_name(source)
  return source:find "^[=@]" and "=typed" or source
end

local function is_incomplete(message)
  return message:find "near <eof>$" ~= nil
end

-- Whether the parser stumbled over the first word, which is all that it can say of an expression
-- when it wants a statement.
local function is_at_first(message, source)
  local near = message:match "near '(.-)'$"
  return near ~= nil and source:match "^%s*(.*)$":sub(1, #near) == near
end

--- A function that runs the source: an expression's values are its results. Text only.
---@param source string
---@param env table
---@return function|nil
---@return moontide.console.Unread|nil
function M.read(source, env)
  local name = chunk_name(source)
  -- More input would come behind the end of this line: a text that ends there stays unfinished.
  local line = source .. "\n"
  local fn, as_expression = load("return " .. line, name, "t", env)
  if fn then return fn end
  local as_statement
  fn, as_statement = load(line, name, "t", env)
  if fn then return fn end
  return nil, {
    message = is_at_first(as_statement, source) and as_expression or as_statement,
    incomplete = is_incomplete(as_statement) or is_incomplete(as_expression),
  }
end

-- ---- a call and nothing else --------------------------------------------------------------------

-- What literals are made of, at the place `at`: the place behind it. A name counts where it is the
-- key of a table; where it is not, the parser will say so.
local function after_literal(text, at)
  local char = text:sub(at, at)
  if char:find "[%s{},;]" then return at + 1 end
  if char == '"' or char == "'" then
    at = at + 1
    while true do
      local stop = text:find("[\\\n" .. char .. "]", at)
      if not stop or text:sub(stop, stop) == "\n" then return nil end
      if text:sub(stop, stop) == char then return stop + 1 end
      at = stop + 2
    end
  end
  local _, last = text:find("^%-?%.?%d[%w.]*", at)
  if last then return last + 1 end
  local word, behind = text:match("^([%a_][%w_]*)()", at)
  if word == "true" or word == "false" or word == "nil" then return behind end
  return word and text:match("^%s*=()", behind)
end

local function is_literals(text)
  local at = 1
  while at and at <= #text do at = after_literal(text, at) end
  return at ~= nil
end

--- The name that is called, if the source is a call with literals (numbers, strings, true, false,
--- nil, tables of those) and nothing else.
---@param source string
---@return string|nil
function M.command(source)
  local name, rest = source:match "^%s*([%a_][%w_]*)%s*(.-)[%s;]*$"
  if not name then return nil end
  local inner = rest:match "^%((.*)%)$"
  if not inner and not rest:find "^[{\"']" then return nil end
  return is_literals(inner or rest) and name or nil
end

return M
