--- The options table of a route: `server:post("/in", { body_limit = "10MB" }, handler)`.

local duration = require "moontide.duration"
local suggest = require "moontide.lazy" "moontide.suggest"
local types = require "moontide.config.types"

local M = {}

---@class moontide.RouteOptions
---@field stream boolean|nil it may hold a connection open: a drain lets none begin
---@field body_limit integer|string|nil "10MB"; else the listener's limits.body
---@field timeout number|string|nil 503 after so long, "none": never; else the listener's
---@field cancel_on_disconnect boolean|nil else the listener's, else only streams

local NAMES = { "body_limit", "cancel_on_disconnect", "stream", "timeout" }

local READ = {}

function READ.stream(value)
  if type(value) ~= "boolean" then return nil, "is true or false" end
  return value
end

READ.cancel_on_disconnect = READ.stream

function READ.body_limit(value)
  local bytes = types.size(value)
  if not bytes or bytes < 1 then
    return nil, "is a whole number of bytes from 1 on, or a text such as \"10MB\""
  end
  return bytes
end

function READ.timeout(value)
  if value == "none" then return 0 end
  local seconds, message = duration.parse(value, "")
  if not seconds then return nil, "is \"none\" or a duration" .. message end
  return seconds
end

--- Checks the options of a route; raises at `level` for what is wrong.
---@param opts table
---@param what string "POST /in"
---@param level integer
---@return moontide.RouteOptions checked a new table; bytes and seconds as numbers
function M.read(opts, what, level)
  local out = {}
  for key, value in pairs(opts) do
    local read = READ[key]
    if not read then
      error(suggest.unknown("option of " .. what, tostring(key), NAMES), level + 1)
    end
    local problem
    out[key], problem = read(value)
    if problem then error(("%s: %s %s"):format(what, key, problem), level + 1) end
  end
  return out
end

return M
