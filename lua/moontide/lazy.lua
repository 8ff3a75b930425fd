--- A module that is loaded when it is first needed: `local suggest = lazy "moontide.suggest"`.
--
-- For modules of functions that a start in order never calls, such as the words of its errors. Each
-- module that is not loaded makes every start shorter.

-- What a script does to the globals must not reach the words of its errors.
local require, setmetatable = require, setmetatable

local modules, names = {}, {}

local Lazy = {
  __index = function(self, key)
    local value = require(names[self])[key]
    self[key] = value
    return value
  end,
}

---@param name string
---@return table
return function(name)
  local module = modules[name]
  if not module then
    module = setmetatable({}, Lazy)
    modules[name], names[module] = module, name
  end
  return module
end
