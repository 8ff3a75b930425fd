--- What may stand as an argument: names that exist now in a command's strings, options in its
--- table.
local chain = require "moontide.console.chain"
local commands = require "moontide.console.commands"
local docs = require "moontide.console.docs"
local live = require "moontide.console.live"

local M = {}

-- `trace("module.fn")`, `watch("expression")` and `help("name")` take Lua.
local LUA = { ["module.fn"] = true, expression = true, name = true }

---@class moontide.console.Call
---@field signature string
---@field text string what is said of its parameters
---@field command boolean
---@field argument integer

-- The arguments of a signature such as `skip("task or phase", "reason")`, without quotes.
local function placeholders(signature)
  local list = {}
  local inside = signature:match "^[%w_.:]*%s*%((.*)%)" or ""
  for argument in inside:gsub("%b{}", "{}"):gmatch "[^,]+" do
    list[#list + 1] = argument:gsub("[\"'?]", ""):match "^%s*(.-)%s*$"
  end
  return list
end

-- Goes back to the bracket that is open behind the token `at`: its index, and how many commas stand
-- between.
local function open_bracket(tokens, at)
  local depth, commas = 0, 0
  while at > 0 do
    local text = tokens[at].kind == "op" and tokens[at].text
    if text == ")" or text == "}" or text == "]" then
      depth = depth + 1
    elseif text == "(" or text == "{" or text == "[" then
      if depth == 0 then return at, commas end
      depth = depth - 1
    elseif text == "," and depth == 0 then
      commas = commas + 1
    end
    at = at - 1
  end
end

-- The call whose last token before its arguments is `at`.
local function call(env, tokens, at, argument)
  local steps = chain.before(tokens, at)
  if not steps then return nil end
  local command = #steps == 1 and steps[1].key and commands.find(steps[1].key)
  if command then
    return { signature = command.signature, text = "", command = true, argument = argument }
  end
  local node = chain.resolve(env, steps)
  local member = node and node.member
  return member and { signature = member.signature, text = member.text, argument = argument }
end

-- The call around what follows the last token: `where "`, `skip("x", "`.
local function call_around(env, tokens, at)
  local last = tokens[at]
  if last and (last.kind == "name" or last.text == "]") then return call(env, tokens, at, 1) end
  local open, commas = open_bracket(tokens, at)
  if open and tokens[open].text == "(" then return call(env, tokens, open - 1, commas + 1) end
end

--- What a string as the next argument names.
---@param env table
---@param tokens moontide.console.Token[] before the string
---@return string[]|"lua"|nil names in no order, maybe twice; "lua": it is source itself
function M.names(env, tokens)
  local found = call_around(env, tokens, #tokens)
  local placeholder = found and placeholders(found.signature)[found.argument]
  if not placeholder then return nil end
  if found.command and LUA[placeholder] then return "lua" end
  return live.names(placeholder)
end

-- The fields of the class that a parameter has, if it is a class of the library.
local function fields_of(found)
  local name = placeholders(found.signature)[found.argument]
  local class = name and ("\n" .. found.text):match("\n  " .. name .. ": (moontide[%w_.]*)")
  local home = class and docs.class(class)
  return home and docs.names(home) or {}
end

--- The options that a table as an argument may have, when a key may stand behind the tokens.
---@param env table
---@param tokens moontide.console.Token[]
---@return string[]|nil
function M.options(env, tokens)
  local last = tokens[#tokens]
  if not last or last.kind ~= "op" or not last.text:find "^[{,]$" then return nil end
  local open = open_bracket(tokens, #tokens)
  if not open or tokens[open].text ~= "{" then return nil end
  local found = call_around(env, tokens, open - 1)
  if not found then return nil end
  if not found.command then return fields_of(found) end
  local names = {}
  for options in found.signature:gmatch "%b{}" do
    for name in options:gmatch "([%w_]+) =" do names[#names + 1] = name end
  end
  return names
end

return M
