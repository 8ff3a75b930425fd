--- What a chain of names stands for: `tide.shutdown`, `jobs["a b"].state`, `("x"):upper`.
--
-- A chain is found by raw reads. What those do not show, because a module of the library is not
-- loaded yet or an object answers by code, is known from the annotations.
local docs = require "moontide.console.docs"
local raw = require "moontide.console.raw"

local M = {}

-- Nobody types a longer chain.
local LONGEST = 50

---@class moontide.console.Step
---@field key string|number|nil
---@field value any of the first step, instead of a key: what the chain begins with

---@class moontide.console.Node what stands at the end of a chain
---@field value any nil: not known
---@field member moontide.console.Member|nil what is said of it
---@field home moontide.console.Home|nil what is said of its members

-- The library as it is required in most scripts, where no global of that name exists.
local function library(name)
  return name == "tide" and package.loaded.moontide or nil
end

local function first(env, step)
  if step.key == nil then return { value = step.value, home = docs.home_of(step.value) } end
  local value = raw.global(env, step.key)
  if value == nil then value = library(step.key) end
  if value == nil then return nil end
  return { value = value, member = docs.of_function(value), home = docs.home_of(value) }
end

local function inner(node, key)
  local value = node.value ~= nil and raw.get(node.value, key) or nil
  local member, home
  if node.home and type(key) == "string" then member, home = docs.member(node.home, key) end
  if value == nil and not member and not home then return nil end
  return {
    value = value, member = docs.of_function(value) or member, home = docs.home_of(value) or home,
  }
end

--- The end of a chain, or nil when nothing is known of it.
---@param env table
---@param steps moontide.console.Step[]
---@return moontide.console.Node|nil
function M.resolve(env, steps)
  local node = first(env, steps[1])
  for i = 2, #steps do
    if not node then return nil end
    node = inner(node, steps[i].key)
  end
  return node
end

--- The steps that end at a token: `a.b["c"]`, read backwards.
---@param tokens moontide.console.Token[]
---@param at integer the last token
---@return moontide.console.Step[]|nil nil: this is no chain of names
---@return integer|nil from its first token
function M.before(tokens, at)
  local steps = {}
  while #steps < LONGEST do
    local token = tokens[at]
    if not token then return nil end
    if token.kind == "name" then
      table.insert(steps, 1, { key = token.text })
      local before = tokens[at - 1]
      if not (before and (before.text == "." or before.text == ":") and before.kind == "op") then
        return steps, at
      end
      at = at - 2
    elseif token.text == "]" and tokens[at - 1] and tokens[at - 1].key ~= nil
      and tokens[at - 2] and tokens[at - 2].text == "[" then
      table.insert(steps, 1, { key = tokens[at - 1].key })
      at = at - 3
    elseif token.text == ")" and tokens[at - 1] and tokens[at - 1].kind == "string"
      and tokens[at - 2] and tokens[at - 2].text == "(" then
      table.insert(steps, 1, { value = tokens[at - 1].key })
      return steps, at - 2
    else
      return nil
    end
  end
end

return M
