--- Lua source up to a cursor as tokens, and what the cursor is inside of. It takes any text.
local M = {}

---@class moontide.console.Token
---@field kind "name"|"keyword"|"number"|"string"|"op"
---@field text string
---@field from integer of its first byte
---@field to integer of its last byte
---@field key string|number|nil what a constant stands for; nil for one that is not plain

---@class moontide.console.Inside
---@field kind "code"|"comment"|"string"
---@field quote string|nil of a short string
---@field from integer|nil first byte of the string's content

---@type table<string, true>
M.keywords = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
  return then true until while]]):gmatch "%a+" do
  M.keywords[word] = true
end

-- Operators of several characters, by their first; the longest first.
local LONG_OPS = {
  ["."] = { "...", ".." }, [":"] = { "::" }, ["<"] = { "<<", "<=" }, [">"] = { ">>", ">=" },
  ["/"] = { "//" }, ["="] = { "==" }, ["~"] = { "~=" },
}

-- The end of a long string or comment whose bracket opens at `at`; nil when nothing opens there.
local function long_end(source, at)
  local level = source:match("^%[(=*)%[", at)
  if not level then return nil end
  local _, to = source:find("]" .. level .. "]", at + #level + 2, true)
  return to or #source + 1
end

-- The last byte of a short string, or nil when it is not finished. Its newlines end it, as Lua has
-- it: what follows is code again.
local function short_end(source, at)
  local quote = source:sub(at, at)
  local i = at + 1
  while true do
    i = source:find("[\\\n" .. quote .. "]", i)
    if not i then return nil end
    local char = source:sub(i, i)
    if char ~= "\\" then return i end
    local _, blank = source:find("^z%s*", i + 1)
    i = blank and blank + 1 or i + 2
  end
end

local function comment_end(source, at)
  return long_end(source, at + 2) or (source:find("\n", at, true) or #source + 2) - 1
end

local function op_end(source, at, char)
  local longer = LONG_OPS[char]
  for i = 1, longer and #longer or 0 do
    local to = at + #longer[i] - 1
    if source:sub(at, to) == longer[i] then return to end
  end
  return at
end

-- The last byte of what begins at `at`, more than the text has when it is not finished, and what
-- it is: the kind of a token, "long" for a long string, or "comment".
local function read(source, at)
  local char = source:sub(at, at)
  local _, to = source:find("^[%a_][%w_]*", at)
  if to then return to, "name" end
  _, to = source:find("^%.?%d[%w_.]*", at)
  if to then return to, "number" end
  if char == "\"" or char == "'" then
    return short_end(source, at) or #source + 1, "string"
  elseif char == "[" then
    to = long_end(source, at)
    if to then return to, "long" end
  elseif char == "-" and source:sub(at + 1, at + 1) == "-" then
    return comment_end(source, at), "comment"
  end
  return op_end(source, at, char), "op"
end

local function token(source, kind, from, to)
  local text = source:sub(from, to)
  if kind == "name" and M.keywords[text] then kind = "keyword" end
  local key
  if kind == "number" then key = tonumber(text) end
  if kind == "string" and text:find "^(.)[^\\\n]*%1$" then key = text:sub(2, -2) end
  if kind == "long" then kind = "string" end
  return { kind = kind, text = text, from = from, to = to, key = key }
end

--- All tokens of the text, and what its end is inside of.
---@param source string
---@return moontide.console.Token[]
---@return moontide.console.Inside
function M.read(source)
  local tokens, at = {}, 1
  while true do
    at = source:find("%S", at)
    if not at then return tokens, { kind = "code" } end
    local to, kind = read(source, at)
    if to > #source and kind == "comment" then
      return tokens, { kind = "comment" }
    elseif to > #source then
      local quote = kind == "string" and source:sub(at, at) or nil
      return tokens, { kind = "string", quote = quote, from = at + 1 }
    elseif kind ~= "comment" then
      tokens[#tokens + 1] = token(source, kind, at, to)
    end
    at = to + 1
  end
end

return M
