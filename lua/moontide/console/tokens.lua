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

local OPS = { "...", "..", "::", "<<", ">>", "//", "==", "~=", "<=", ">=" }

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

local readers = {}

function readers.comment(source, at)
  if source:sub(at, at + 1) ~= "--" then return nil end
  local to = long_end(source, at + 2)
  if not to then to = (source:find("\n", at, true) or #source + 2) - 1 end
  return to, "comment"
end

function readers.string(source, at)
  local char = source:sub(at, at)
  if char == "[" then return long_end(source, at), "long" end
  if char ~= "\"" and char ~= "'" then return nil end
  return short_end(source, at) or #source + 1, "string"
end

function readers.name(source, at)
  local _, to = source:find("^[%a_][%w_]*", at)
  return to, "name"
end

function readers.number(source, at)
  local _, to = source:find("^%.?%d[%w_.]*", at)
  return to, "number"
end

function readers.op(source, at)
  for _, op in ipairs(OPS) do
    if source:sub(at, at + #op - 1) == op then return at + #op - 1, "op" end
  end
  return at, "op"
end

local ORDER = { "comment", "string", "name", "number", "op" }

local function read(source, at)
  for _, name in ipairs(ORDER) do
    local to, kind = readers[name](source, at)
    if to then return to, kind end
  end
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
