--- Help: what there is to type, and what is known of a name. It runs no code of a script.
--
-- Commands are described in commands.lua and the library by its annotations; of a script's function
-- the place and the parameters are known.
local chain = require "moontide.console.chain"
local commands = require "moontide.console.commands"
local docs = require "moontide.console.docs"
local raw = require "moontide.console.raw"
local scalars = require "moontide.console.printer.scalars"
local suggest = require "moontide.lazy" "moontide.suggest"
local tokens_of = require "moontide.console.tokens"

local M = {}

local INTRO = "Type Lua, or one of these; help(\"NAME\") tells more, also of tide.spawn."
local WIDTH = 80
-- Longer texts are no names.
local LONGEST = 200

local function indented(text)
  return (("\n" .. text):gsub("\n([^\n])", "\n  %1"):sub(2))
end

-- Words in lines, each behind two blanks.
local function wrapped(words)
  local lines, line = {}, " "
  for _, word in ipairs(words) do
    if #line + #word + 1 > WIDTH then
      lines[#lines + 1] = line
      line = " "
    end
    line = line .. " " .. word
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

-- ---- commands -----------------------------------------------------------------------------------

--- All commands, a line each.
---@return string
function M.overview()
  local lines, width = { INTRO, "" }, 0
  for _, command in ipairs(commands.list) do width = math.max(width, #command.name) end
  for _, command in ipairs(commands.list) do
    lines[#lines + 1] = ("%-" .. width .. "s %s"):format(command.name, command.help)
  end
  return table.concat(lines, "\n")
end

local function of_command(command)
  local text = ("%s\n%s"):format(command.signature, indented(command.help))
  if command.needs == "eval" then text = text .. "\n  Needs the policy eval." end
  return text
end

-- ---- the library --------------------------------------------------------------------------------

local function of_member(name, member)
  local lines = { name .. member.signature }
  if member.text ~= "" then lines[2] = indented(member.text) end
  lines[#lines + 1] = "  " .. member.place
  return table.concat(lines, "\n")
end

-- The fields of a class say their type, each on a line; functions are listed by name.
local function members_of(home)
  local fields, functions = {}, {}
  for _, name in ipairs(docs.names(home)) do
    local member, inner = docs.member(home, name)
    if member and member.signature:find "^:" then
      local text = member.text ~= "" and "  " .. member.text:gsub("\n", " ") or ""
      fields[#fields + 1] = ("  .%s%s%s"):format(name, member.signature, text)
    elseif member or inner then
      functions[#functions + 1] = name .. (member and member.signature:find "^%(" and "()" or "")
    end
  end
  if #functions > 0 then fields[#fields + 1] = wrapped(functions) end
  return table.concat(fields, "\n")
end

local function of_home(name, home, member)
  local lines = { name == home.name and name or ("%s (%s)"):format(name, home.name) }
  local text = member and member.text ~= "" and member.text or home.text
  if text ~= "" then lines[#lines + 1] = indented(text) end
  local members = members_of(home)
  if members ~= "" then lines[#lines + 1] = members end
  lines[#lines + 1] = "  " .. home.place
  return table.concat(lines, "\n")
end

-- ---- other values -------------------------------------------------------------------------------

local function parameters(fn)
  local info = debug.getinfo(fn, "u")
  local names = {}
  for i = 1, info.nparams do names[i] = debug.getlocal(fn, i) or "?" end
  if info.isvararg then names[#names + 1] = "..." end
  return scalars.clean(table.concat(names, ", "))
end

local function of_function(name, fn)
  local info = debug.getinfo(fn, "S")
  if info.what == "C" then
    return ("%s(...)\n  a function written in C"):format(name)
  end
  return scalars.clean(("%s(%s)\n  %s:%d"):format(name, parameters(fn), info.short_src,
    info.linedefined), true)
end

local function of_other(name, value)
  local kind = type(value)
  if kind == "function" then return of_function(name, value) end
  if kind == "string" then
    return ("%s\n  a string of %d bytes"):format(name, #value)
  elseif kind == "table" or kind == "userdata" then
    local class = scalars.class(value)
    return ("%s\n  a %s%s"):format(name, kind, class and ", " .. class or "")
  end
  return ("%s\n  %s"):format(name, scalars.text(value))
end

-- ---- names --------------------------------------------------------------------------------------

local function of_node(name, node)
  local member, home = node.member, node.home
  local is_function = member and member.signature:find "^%("
  if home and not is_function then return of_home(name, home, member) end
  if member and (is_function or member.text ~= "") then return of_member(name, member) end
  return of_other(name, node.value)
end

-- Names of the library as the annotations have them: `moontide.Task`, `Task:await`.
local function of_annotation(name)
  local home = docs.class(name) or docs.class("moontide." .. name) or docs.module(name)
  if home then return of_home(name, home) end
  local of, member_name = name:match "^(.+)[.:]([%w_]+)$"
  if not of then return nil end
  home = docs.class(of) or docs.class("moontide." .. of) or docs.module(of)
  local member, inner = nil, nil
  if home then member, inner = docs.member(home, member_name) end
  if member then return of_member(name, member) end
  return inner and of_home(name, inner)
end

local function steps_of(name)
  local tokens, inside = tokens_of.read(name)
  if inside.kind ~= "code" then return nil end
  local steps, from = chain.before(tokens, #tokens)
  return from == 1 and steps or nil
end

-- What the name could have meant.
local function candidates(env, name, steps)
  local names = {}
  local function add(other) names[other] = true end
  local parent = steps and #steps > 1
    and chain.resolve(env, table.move(steps, 1, #steps - 1, 1, {}))
  if not parent then
    raw.each_global(env, function(other) add(scalars.clean(other)) end)
    return suggest.names(names)
  end
  local before = name:match "^(.*[.:])[%w_]*$" or ""
  raw.each(parent.value, function(other) add(scalars.clean(before .. other)) end)
  for _, other in ipairs(parent.home and docs.names(parent.home) or {}) do
    add(before .. other)
  end
  return suggest.names(names)
end

--- What is known of a name; "" asks for all commands.
---@param env table the environment of evaluations
---@param name string
---@return string|nil
---@return string|nil message when nothing is: with the nearest name
function M.of(env, name)
  if #name > LONGEST then return nil, ("a text of %d bytes is no name"):format(#name) end
  name = name:match "^%s*(.-)%s*$"
  if name == "" then return M.overview() end
  local command = commands.find(name)
  if command then return of_command(command) end
  if tokens_of.keywords[name] then return ("%s\n  a keyword of Lua"):format(name) end
  local steps = steps_of(name)
  local node = steps and chain.resolve(env, steps)
  local shown = scalars.clean(name)
  local text = node and of_node(shown, node) or of_annotation(shown)
  if text then return text end
  return nil, suggest.unknown("name", shown, candidates(env, name, steps))
end

-- What is known of a value that a name was evaluated to.
local function of_value(env, value)
  for _, command in ipairs(commands.list) do
    if rawequal(raw.global(env, command.name), value) then return of_command(command) end
  end
  local name = type(value) == "function" and scalars.function_names()[value]
    or scalars.class(value) or type(value)
  return of_node(name, {
    value = value, member = docs.of_function(value), home = docs.home_of(value),
  })
end

local Shown = { __console = function(shown) return shown.text end }

--- The command `help`: of everything, of a name in quotes, or of a value.
---@param session moontide.console.Session
---@param ... any a name, a value, or nothing
---@return table shown as text by the printer
function M.show(session, ...)
  local what, env = ..., session:environment()
  local text, message
  if select("#", ...) == 0 then
    text = M.overview()
  elseif type(what) == "string" then
    text, message = M.of(env, what)
  else
    text = of_value(env, what)
  end
  if not text then error(message, 0) end
  return setmetatable({ text = text }, Shown)
end

return M
