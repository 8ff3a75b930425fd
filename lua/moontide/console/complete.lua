--- Completion: what may stand at a place of the source. It runs no code of a script.
local arguments = require "moontide.console.complete.arguments"
local chain = require "moontide.console.chain"
local docs = require "moontide.console.docs"
local raw = require "moontide.console.raw"
local scalars = require "moontide.console.printer.scalars"
local tokens_of = require "moontide.console.tokens"

local M = {}

-- Longer sources are no input of a person; taking this one apart takes some 10 ms.
local LONGEST = 32 * 1024
-- So many items are offered at most.
local ITEMS = 500

-- ---- items --------------------------------------------------------------------------------------

-- Collects names that begin with the word, each once.
local function collector(word)
  local items, seen = {}, {}
  return items, function(name)
    if seen[name] or name:sub(1, #word) ~= word then return end
    seen[name] = true
    items[#items + 1] = name
  end
end

local function sorted(items)
  table.sort(items)
  return table.move(items, 1, math.min(#items, ITEMS), 1, {})
end

local function is_name(text)
  return text:find "^[%a_][%w_]*$" and not tokens_of.keywords[text]
end

-- ---- names --------------------------------------------------------------------------------------

-- The names that the source itself makes: locals, parameters, loop variables. Where they hold is
-- not looked at.
local function own_names(tokens)
  local names = {}
  local function list(at)
    while tokens[at] and (tokens[at].kind == "name" or tokens[at].text == ",") do
      names[tokens[at].text] = true
      at = at + 1
      if tokens[at] and tokens[at].text == "<" then at = at + 3 end -- an attribute
    end
  end
  for i, token in ipairs(tokens) do
    if token.text == "local" or token.text == "for" then
      list(i + 1)
    elseif token.text == "function" then
      local open = i + 1
      while tokens[open] and tokens[open].text ~= "(" and open < i + 20 do open = open + 1 end
      list(open + 1)
    end
  end
  names[","] = nil
  return names
end

-- A name that stands by itself.
local function globals(env, word, tokens)
  local items, add = collector(word)
  for _, name in ipairs(arguments.options(env, tokens) or {}) do add(name) end
  for name in pairs(own_names(tokens)) do add(name) end
  raw.each_global(env, function(name) if is_name(name) then add(name) end end)
  if word ~= "" then
    for name in pairs(tokens_of.keywords) do add(name) end
  end
  return sorted(items)
end

-- What the chain before the last dot or colon has; nil when nothing is known of it.
local function node_before(env, tokens, at)
  local steps, from = chain.before(tokens, at)
  if not steps then return nil end
  if steps[1].key and own_names(tokens)[tokens[from].text] then return nil end
  return chain.resolve(env, steps)
end

local function members(env, word, tokens, at, methods)
  local node = node_before(env, tokens, at)
  if not node then return {} end
  local items, add = collector(word)
  raw.each(node.value, function(name, value)
    if is_name(name) and (not methods or raw.is_callable(value)) then add(name) end
  end)
  for _, name in ipairs(node.home and docs.names(node.home, methods) or {}) do
    if is_name(name) then add(name) end
  end
  return sorted(items)
end

-- ---- inside of strings --------------------------------------------------------------------------

-- Whether a name can stand in the string as it is, and be shown as it is.
local function fits(name, quote)
  return not name:find("\\", 1, true) and not name:find(quote, 1, true)
    and scalars.clean(name) == name
end

-- The keys of a table: `jobs["`.
local function keys(env, tokens, word, quote)
  local node = node_before(env, tokens, #tokens - 1)
  local items, add = collector(word)
  raw.each(node and node.value, function(name) if fits(name, quote) then add(name) end end)
  return sorted(items)
end

local at_end

local function in_string(env, source, tokens, inside)
  local word, last = source:sub(inside.from), tokens[#tokens]
  if not inside.quote or not last or word:find "\\" then return #source, {} end
  if last.text == "[" and last.kind == "op" then
    return inside.from - 1, keys(env, tokens, word, inside.quote)
  end
  local names = arguments.names(env, tokens)
  if names == "lua" then
    local from, items = at_end(env, word)
    return inside.from - 1 + from, items
  end
  local items, add = collector(word)
  for _, name in ipairs(names or {}) do
    if fits(name, inside.quote) then add(name) end
  end
  return inside.from - 1, sorted(items)
end

-- ---- at the end of a text: how many bytes of it stay, and what may follow them -----------------

-- After `local` and the like stands a new name.
local function declares(token)
  return token and token.kind ~= "string"
    and (token.text == "local" or token.text == "for" or token.text == "goto"
      or token.text == "::")
end

local function in_code(env, source, tokens)
  local last = tokens[#tokens]
  local word, from = "", #source
  if last and last.to == #source then
    if last.kind == "number" then return #source, {} end
    if last.kind == "name" or last.kind == "keyword" then
      word, from = last.text, last.from - 1
      table.remove(tokens)
    end
  end
  local before = tokens[#tokens]
  local op = before and before.kind == "op" and before.text
  if op == "." or op == ":" then
    return from, members(env, word, tokens, #tokens - 1, op == ":")
  elseif declares(before) then
    local items, add = collector(word)
    if before.text == "local" then add "function" end
    return from, sorted(items)
  end
  return from, globals(env, word, tokens)
end

function at_end(env, source)
  local tokens, inside = tokens_of.read(source)
  if inside.kind == "code" then return in_code(env, source, tokens) end
  if inside.kind == "string" then return in_string(env, source, tokens, inside) end
  return #source, {}
end

--- What may stand at the cursor: each item goes in the place of the bytes `from` to cursor - 1.
---@param env table the environment of evaluations
---@param source string all of the input, also of several lines
---@param cursor integer the byte that the cursor is on: 1 to #source + 1
---@return integer|nil from nil: the arguments make no sense
---@return string[]|string items sorted, at most 500; or what is wrong
function M.at(env, source, cursor)
  if math.type(cursor) ~= "integer" or cursor < 1 or cursor > #source + 1 then
    return nil, ("the cursor is %s; it stands on byte 1 to %d here"):format(tostring(cursor),
      #source + 1)
  elseif cursor - 1 > LONGEST then
    return nil, ("%d bytes before the cursor are too many to complete; at most %d are read"):format(
      cursor - 1, LONGEST)
  end
  local before, items = at_end(env, source:sub(1, cursor - 1))
  return before + 1, items
end

return M
