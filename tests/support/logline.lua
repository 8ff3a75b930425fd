--- Parses log lines of the host, JSON or logfmt, into tables.
local cjson = require "cjson.safe"

local M = {}

local escapes = { n = "\n", t = "\t", r = "\r", b = "\b", f = "\f" }

local function unquote(text)
  text = text:gsub("\\u(%x%x%x%x)", function(hex) return utf8.char(tonumber(hex, 16)) end)
  return (text:gsub("\\(.)", function(char) return escapes[char] or char end))
end

local function parse_logfmt(line)
  local record, at = {}, 1
  while at <= #line do
    local key, after = line:match("^%s*([^%s=\"]+)=()", at)
    if not key then return nil end
    local value, next_at
    if line:sub(after, after) == '"' then
      local stop = after + 1
      while stop <= #line and line:sub(stop, stop) ~= '"' do
        stop = stop + (line:sub(stop, stop) == "\\" and 2 or 1)
      end
      value, next_at = unquote(line:sub(after + 1, stop - 1)), stop + 1
    else
      value, next_at = line:match("^(%S*)()", after)
      value = tonumber(value) or value
    end
    record[key] = value
    at = line:match("^%s*()", next_at)
  end
  return next(record) and record or nil
end

--- The record of a line; nil when it is neither JSON nor logfmt.
---@param line string
---@return table<string, any>?
function M.parse(line)
  if line:sub(1, 1) == "{" then
    local record = cjson.decode(line)
    return type(record) == "table" and record or nil
  end
  return parse_logfmt(line)
end

return M
