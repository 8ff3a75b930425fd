--- `next` for tables that others may change at the same time: an evaluation yields to the loop
--- while it looks at one, and finalizers run anywhere. What the application has taken out meanwhile
--- cannot be gone on from, which ends the walk instead of raising.

---@param value table
---@param key any
---@return any key nil: that was the last one, or the place is lost
---@return any held
---@return boolean|nil lost
return function(value, key)
  local ok, following, held = pcall(next, value, key)
  if ok then return following, held end
  return nil, nil, true
end
