--- What to say about a key that does not exist. Pure.
local keys = require("moontide.config.keys")
local schema = require("moontide.config.schema")
local suggest = require("moontide.suggest")

--- The keys of other groups whose last part is `key`: "timeout" alone is likely
--- to be meant as "startup.timeout" or "shutdown.timeout".
local function same_tail(key)
  local found = {}
  for _, row in ipairs(schema.keys) do
    if row[1]:sub(-#key - 1) == "." .. key then found[#found + 1] = ("\"%s\""):format(row[1]) end
  end
  return #found > 0 and table.concat(found, " or ") or nil
end

--- The same for a key under a chosen name, told apart from its table.
local function unknown_named(key, named)
  local field = key:match("[^.]+$")
  local where, hint, names = key:sub(1, -#field - 2), schema.hints[field], {}
  for i, row in ipairs(named) do names[i] = row[1] end
  if hint and suggest.nearest(hint, names) == hint then
    return ("%s: unknown key \"%s\"; did you mean \"%s\"?"):format(where, field, hint)
  end
  return ("%s: %s"):format(where, suggest.unknown("key", field, names))
end

--- "unknown key ..." with the nearest right one, spelled by `spell`.
---@param key string
---@param spell? fun(key: string): string
---@return string message
return function(key, spell)
  local named = schema.named[key:match("^(%a+%.%a+)%.[^.]+%.[^.]+$")]
  if named then return unknown_named(key, named) end
  local names = keys.names()
  for group in pairs(keys.groups) do names[#names + 1] = group end
  table.sort(names)
  local tail = not key:find(".", 1, true) and same_tail(key)
  local near = suggest.nearest(key, names)
  if near then near = ("\"%s\""):format(spell and spell(near) or near) end
  near = tail or near
  if near then return ("unknown key \"%s\"; did you mean %s?"):format(key, near) end
  return suggest.unknown("key", key, names)
end

