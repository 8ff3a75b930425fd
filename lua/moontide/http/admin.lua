--- The answers of the management listener that need Lua.

local core = require "moontide.core"

local M = {}

--- In the text format that a scraper asks for.
function M.metrics(req)
  local text, kind = require("moontide.observe.metrics").collect(req.headers.accept)
  return 200, text, { ["Content-Type"] = kind }
end

-- Requests, jobs: what a drain would wait for.
local function in_flight()
  local sum = 0
  for _, kind in ipairs(require("moontide.core.work").all()) do sum = sum + kind.active end
  return sum
end

--- The state of the lifecycle.
function M.lifecycle()
  local shutdown = require "moontide.shutdown"
  local _, status = core.health.ready()
  return {
    state = core.state.get(), status = status, reason = shutdown.reason
      and tostring(shutdown.reason) or nil,
    in_flight = in_flight(),
  }
end

-- Compares in a time that does not depend on where the two differ.
local function same(a, b)
  if #a ~= #b then return false end
  local difference = 0
  for i = 1, #a do difference = difference | (a:byte(i) ~ b:byte(i)) end
  return difference == 0
end

--- Begins a shutdown for who knows the token.
---@param token string `manage.token`
function M.shut_down(req, token)
  local given = (req.headers.authorization or ""):match("^[Bb]earer%s+(.+)$")
  if not (given and same(given, token)) then
    return 401, "a bearer token is needed\n", { ["WWW-Authenticate"] = "Bearer" }
  end
  local reason = require("moontide.reason").new("admin", { text = req.remote })
  require("moontide.shutdown"):run(reason)
  return 202, { state = core.state.get() }
end

return M
