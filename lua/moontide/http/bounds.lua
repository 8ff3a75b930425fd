--- The limits and timeouts of one listener, as `tide.http.listen` is given them: the same keys and
--- the same spellings as in the configuration.

local schema = require "moontide.config.schema"
local suggest = require "moontide.suggest"
local types = require "moontide.config.types"

local M = {}

--- Sizes are bytes or a text ("64KiB"). What is not given is that of the configuration.
---@class moontide.ListenLimits
---@field request_line integer|string|nil 8 KiB; 414
---@field headers integer|string|nil all fields of a request, 32 KiB; 431
---@field header_field integer|string|nil one of them, 8 KiB; 431
---@field header_count integer|nil 100 at most; 431
---@field trailers integer|string|nil behind a chunked body, 4 KiB; 431
---@field trailer_count integer|nil 16; 431
---@field chunk_extensions integer|string|nil in all of a body, 4 KiB; 400
---@field body integer|string|nil 1 MiB; 413. A route's body_limit goes first
---@field requests_per_connection integer|nil 10000; 0: any number

--- Times are seconds or a text ("500ms").
---@class moontide.ListenTimeouts
---@field header number|string|nil from the first byte of a request to the end of its head, 10s; 408
---@field idle number|string|nil between two requests, 75s; what clients are told
---@field body_idle number|string|nil between two pieces of a body, 30s; 408
---@field body_min_rate integer|string|nil bytes a second, after 5 s of a body, 240; 0: any. 408
---@field request_total number|string|nil head and body, 300s; 408
---@field write_stall number|string|nil in which a client takes nothing of its answer, 30s; reset
---@field write_min_rate integer|string|nil bytes a second that it takes, 240; 0: any. Reset
---@field lingering_idle number|string|nil for a client that falls silent behind our end, 2s
---@field lingering_total number|string|nil for one that goes on sending, 5s
---@field accept_drain number|string|nil for the end of the accept queue, 1s
---@field first_byte_grace number|string|nil in which one that never spoke holds a drain, 1s
---@field header_in_drain number|string|nil `header`, in a drain, 5s

local function row_of(name)
  for _, row in ipairs(schema.keys) do
    if row[1] == name then return row end
  end
end

--- Reads a table of them; raises for what cannot be.
---@param given table
---@param group "limits"|"timeouts"
---@param known string[] its keys
---@param level integer whom an error blames
---@return table<string, number> sizes in bytes, times in seconds
function M.read(given, group, known, level)
  local allowed, read = {}, {}
  for _, key in ipairs(known) do allowed[key] = true end
  for key, value in pairs(given) do
    if not allowed[key] then
      error(suggest.unknown("key of " .. group, tostring(key), known), level + 1)
    end
    local row = row_of(group .. "." .. key)
    local parsed, problem = types[row[2]](value, row[4])
    if parsed == nil then
      error(("tide.http.listen: %s.%s: %s"):format(group, key, problem), level + 1)
    end
    read[key] = parsed
  end
  return read
end

return M
