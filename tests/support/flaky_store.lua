--- A store around another one that takes its time and fails as it is told.
---
---     local store = flaky.new(inner)
---     store.delay = function(method) return 0.01 end      -- seconds before each call
---     store.fault = function(method, n) return n <= 2 and "before" or nil end
---
--- A fault is "before" (nothing happened), "after" (it did happen, and nobody can tell) or "raise";
--- n counts the calls of the method.
local task = require "moontide.task"

local M = {}

local ASKED = {
  "add", "get", "find", "update", "finish", "release", "remove", "unfinished", "adopt",
}

local function failed(method, how)
  return nil, { message = ("%s failed %s"):format(method, how) }
end

local function wrap(method)
  return function(self, ...)
    self.calls[method] = (self.calls[method] or 0) + 1
    local how = self.fault and self.fault(method, self.calls[method])
    if self.delay then task.sleep(self.delay(method)) end
    if how == "raise" then error(method .. " broke") end
    if how == "before" then return failed(method, how) end
    local value, err = self.inner[method](self.inner, ...)
    if self.delay then task.sleep(self.delay(method)) end
    if how == "after" then return failed(method, how) end
    return value, err
  end
end

---@param inner table
---@return table store
function M.new(inner)
  local self = { inner = inner, calls = {}, owner = inner.owner }
  for _, method in ipairs(ASKED) do self[method] = wrap(method) end
  function self.open() end
  function self.close() end
  function self.is_alive(_, record) return inner:is_alive(record) end
  return self
end

return M
