--- The Idempotency-Key field, as draft-ietf-httpapi-idempotency-key-header has it: its syntax, what
--- tells two requests apart, and the answers for a wrong use.

local digest = require "moontide.core.digest"

local M = {}

--- Between the scope of a route and what the script adds.
M.SEPARATOR = "\31"
--- Bytes that a key may have.
M.KEY_MAX = 255

local DRAFT = "https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/"

--- An answer that describes a problem (RFC 9457); to be returned by a handler.
---@param status integer
---@param title string
---@param detail string
---@param retry_after number|nil seconds
---@param kind string|nil where the problem is described
---@return integer status
---@return table body
---@return table headers
function M.problem(status, title, detail, retry_after, kind)
  local body = { title = title, detail = detail, status = status, type = kind }
  local headers = { ["Content-Type"] = "application/problem+json", ["Cache-Control"] = "no-store" }
  if retry_after then headers["Retry-After"] = tostring(math.ceil(retry_after)) end
  return status, body, headers
end

-- A String of RFC 8941: in quotes, printable ASCII, with \" and \\ as the only escapes.
local function from_quotes(text)
  local inner = text:match "^\"(.*)\"$"
  if not inner or inner:find "[^\32-\126]" then return nil end
  local rest = inner:gsub("\\[\"\\]", "")
  if rest:find "[\"\\]" then return nil end
  return (inner:gsub("\\([\"\\])", "%1"))
end

--- The key in the text of a field. Without quotes it is taken too, as most clients in use send it.
---@param text string
---@return string|nil key
---@return string|nil problem
function M.parse_key(text)
  text = text:match "^%s*(.-)%s*$"
  local key
  if text:sub(1, 1) == "\"" then
    key = from_quotes(text)
  elseif not text:find "[^%w%-._~:/+=@!]" then
    key = text
  end
  if not key then return nil, "it is not one string, such as \"8e03978e-40d5-43e8-bc93\"" end
  if key == "" then return nil, "it is empty" end
  if #key > M.KEY_MAX then
    return nil, ("it has %d characters, more than %d"):format(#key, M.KEY_MAX)
  end
  return key
end

--- The key of a request.
---@param req moontide.Request
---@param required boolean
---@return string|nil key nil: none was sent, and none is needed
---@return string|nil wrong what is wrong with it, or that it is missing
function M.key_of(req, required)
  local text = req.headers["idempotency-key"]
  if text then return M.parse_key(text) end
  if required then return nil, "this operation needs one" end
  return nil
end

--- The answer to a request whose key is wrong or missing.
---@param wrong string
function M.bad_key(wrong)
  local title = wrong == "this operation needs one" and "Idempotency-Key is missing"
    or "Idempotency-Key is not valid"
  return M.problem(400, title, "the Idempotency-Key field: " .. wrong, nil, DRAFT)
end

--- The answer to a key that came with another request before.
function M.reused()
  return M.problem(422, "Idempotency-Key is already used",
    "this key came with another request: a key stands for one method, target and body", nil, DRAFT)
end

--- The answer to a key whose request is being worked on.
---@param retry_after number
function M.outstanding(retry_after)
  return M.problem(409, "A request is outstanding for this Idempotency-Key",
    "a request with this key is being worked on", retry_after, DRAFT)
end

--- The answer when the store is full or fails.
---@param failure moontide.StoreError
---@param retry_after number
function M.unavailable(failure, retry_after)
  local title = failure.full and "The store is full" or "The store does not answer"
  return M.problem(503, title, "nothing was begun; the same request may be sent again",
    failure.retry_after or retry_after)
end

--- What tells requests with the same key apart.
---@param req moontide.Request
---@param body string
---@return string hex
function M.fingerprint(req, body)
  return digest.sha256(req.method, req.target, body)
end

--- The scope of a route's keys: two routes never share a key.
---@param route { server: moontide.Server, method: string, pattern: string }
---@return string
function M.scope(route)
  return ("%s %s %s"):format(route.server.name, route.method, route.pattern)
end

--- The scope of this request's key: the route's, or what the script makes of it.
---@param scope string
---@param refine fun(req: moontide.Request): string|nil
---@param req moontide.Request
---@return string
function M.scope_of(scope, refine, req)
  if not refine then return scope end
  local own = refine(req)
  if type(own) ~= "string" then
    error(("scope: the function must return a string, not a %s"):format(type(own)), 0)
  end
  return scope .. M.SEPARATOR .. own
end

--- The whole body, or the end of the handler with 400.
---@async
---@param req moontide.Request
---@return string
function M.body(req)
  local body, why = req:body()
  if not body then require("moontide.http.exchange").raise(400, "request body: " .. why) end
  return body
end

return M
