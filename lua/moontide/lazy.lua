--- A module that is loaded when it is first needed: `local suggest = lazy "moontide.suggest"`.
--
-- For modules of functions that a start in order never calls, such as the words of its errors. Each
-- module that is not loaded makes every start shorter.

-- What a script does to the globals must not reach the words of its errors.
local require, setmetatable = require, setmetatable

local modules = {}

---@param name string
---@return table
return function(name)
  local module = modules[name]
  if not module then
    module = setmetatable({}, {
      __index = function(self, key)
        local value = require(name)[key]
        self[key] = value
        return value
      end,
    })
    modules[name] = module
  end
  return module
end
