--- What a handler returns, as something that can be kept: { status, headers, body }.

local json = require "moontide.json"

local M = {}

---@class moontide.Result
---@field status integer
---@field headers table<string, string|string[]>
---@field body string|nil nil: the answer has none

local TEXT, JSON = "text/plain; charset=utf-8", "application/json"

local function check_value(name, value)
  if type(name) ~= "string" or type(value) ~= "string" then
    error("header names are strings, their values strings or numbers", 0)
  end
  if name:find "[^%w!#$%%&'*+%-.^_`|~]" or name == "" or value:find "[\r\n\0]" then
    error(("the header field %q is not one"):format(name), 0)
  end
  return value
end

-- A copy in which all values are strings; one that could not be sent is found now, not when
-- somebody asks for the result.
local function copy_headers(copy, headers)
  for name, value in pairs(headers or {}) do
    if type(value) == "table" then
      local list = {}
      for i, one in ipairs(value) do list[i] = check_value(name, tostring(one)) end
      copy[name] = list
    else
      if math.type(value) then value = tostring(value) end
      copy[name] = check_value(name, value)
    end
  end
  return copy
end

local function type_of(headers)
  for name, value in pairs(headers) do
    if name:lower() == "content-type" then return value end
  end
end

--- Whether the body says that it is JSON.
---@param kept moontide.Result
---@return boolean
function M.is_json(kept)
  return tostring(type_of(kept.headers)):find "^application/json" ~= nil
end

--- From `body | status, body, headers | nothing`; raises for anything else. A handler of requests
--- may have set a status, which counts more, and headers, which count less.
---@param set_status integer|nil
---@param set_headers table|nil
---@return moontide.Result
function M.of(set_status, set_headers, a, b, c)
  local status, body, headers = 200, a, b
  if type(a) == "number" then status, body, headers = a, b, c end
  status = set_status or status
  status = math.tointeger(status)
  if not status or status < 200 or status > 599 then
    error("the status is a whole number from 200 to 599", 0)
  end
  if headers ~= nil and type(headers) ~= "table" then
    error("the headers of an answer are a table", 0)
  end
  local result = { status = status, headers = copy_headers(copy_headers({}, set_headers), headers) }
  local kind = type(body)
  if kind == "nil" then
    if status == 200 then result.status = 204 end
    return result
  elseif kind ~= "string" and kind ~= "table" then
    error(("a string, a table or nothing is returned, perhaps after a status; not a %s"):format(
      kind), 0)
  end
  if not type_of(result.headers) then
    result.headers["Content-Type"] = kind == "table" and JSON or TEXT
  end
  result.body = kind == "table" and json.encode(body) or body
  return result
end

--- As a handler returns it, with fields added.
---@param result moontide.Result
---@param more table<string, string>|nil
---@return integer status
---@return string|nil body
---@return table headers
function M.answer(result, more)
  local headers = {}
  for name, value in pairs(result.headers) do headers[name] = value end
  for name, value in pairs(more or {}) do headers[name] = value end
  return result.status, result.body, headers
end

return M
