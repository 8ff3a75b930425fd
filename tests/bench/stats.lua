--- What the benches say of a list of numbers.
local M = {}

---@param list number[]
---@param p number 0 to 1
---@return number
function M.percentile(list, p)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  return sorted[math.max(1, math.ceil(p * #sorted))]
end

---@param list number[]
---@return number
function M.median(list)
  return M.percentile(list, 0.5)
end

---@param list number[]
---@return number
function M.min(list)
  return math.min(table.unpack(list))
end

---@param list number[]
---@return number
function M.max(list)
  return math.max(table.unpack(list))
end

--- One field of each record.
---@param records table[]
---@param field string
---@return number[]
function M.column(records, field)
  local list = {}
  for i, record in ipairs(records) do list[i] = record[field] end
  return list
end

return M
