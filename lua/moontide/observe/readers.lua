--- Who reads along with the log: consoles that tail it, sinks of the script's.
--
-- One tap in the core for all of them, at the least of their levels, so a reader may also see what
-- the process itself does not write. Nobody waits for a reader: the tap drops what would be too
-- much, and says how many.

local tap = require "moontide.core.tail"

local M = {}

---@class moontide.LogReader
---@field level integer 0 debug, 1 info, 2 warn, 3 error: the least that it is given
---@field read fun(reader: moontide.LogReader, line: string, level: integer) a record, as JSON
---@field lost fun(reader: moontide.LogReader, count: integer) so many were dropped before they came

local readers = {} ---@type table<moontide.LogReader, true>

-- Whoever leaves meanwhile is in the list still, but no longer in the table.
local function on_records(records, lost)
  local list = {}
  for reader in pairs(readers) do list[#list + 1] = reader end
  for _, reader in ipairs(list) do
    if lost > 0 then reader:lost(lost) end
    for i = 1, #records, 2 do
      if readers[reader] and records[i] >= reader.level then
        reader:read(records[i + 1], records[i])
      end
    end
  end
end

local function listen()
  local least
  for reader in pairs(readers) do least = math.min(least or reader.level, reader.level) end
  if least then tap.start(least, on_records) else tap.stop() end
end

--- From now on it is given records.
---@param reader moontide.LogReader
function M.add(reader)
  readers[reader] = true
  listen()
end

--- No more; again harmless.
---@param reader moontide.LogReader
function M.remove(reader)
  if not readers[reader] then return end
  readers[reader] = nil
  listen()
end

--- Hands over what has been written up to now.
function M.flush()
  if next(readers) then on_records(tap.take()) end
end

return M
