--- Why a shutdown runs: a value with a kind, a chain of parent kinds, and fields.
--- Pure. `tide.reason` is this module.
local suggest = require("moontide.suggest")

local M = {}

---@class tide.Reason
---@field kind string
---@field exit_code integer what the process exits with when nothing goes wrong
---@field text? string free words of whoever asked
---@field signal? string "SIGTERM", of a process-terminate
---@field pid? integer sender of the signal
---@field code? integer of `os.exit(code)`
local methods = {}
-- A value that all tasks of a shutdown see: its fields are kept apart, and do not change.
local Reason = {}
local fields_of = setmetatable({}, { __mode = "k" })

function Reason:__index(key)
  return methods[key] or fields_of[self][key]
end

function Reason:__newindex(key)
  error(("a reason does not change: %s cannot be set"):format(tostring(key)), 2)
end

function Reason:__pairs()
  return next, fields_of[self], nil
end

--- kind -> { exit_code =, parent = }. A child without an exit code of its own
--- has its parent's.
---@type table<string, { exit_code: integer, parent: string|nil }>
M.kinds = {
  ["process-terminate"] = { exit_code = 0 },
  ["actor-system-terminate"] = { exit_code = 0 },
  ["cluster-leaving"] = { exit_code = 0 },
  -- Not 0: a node that was thrown out has to be started again.
  ["cluster-downing"] = { exit_code = 1 },
  ["startup-failed"] = { exit_code = 1 },
  ["uncaught-error"] = { exit_code = 1 },
  ["script-end"] = { exit_code = 0 },
  ["exit"] = { exit_code = 0 },
  ["admin"] = { exit_code = 0 },
  ["takeover"] = { exit_code = 0 },
  ["console"] = { exit_code = 0 },
  ["unknown"] = { exit_code = 0 },
}
local builtin = {}
for kind in pairs(M.kinds) do builtin[kind] = true end

--- The known kinds, sorted: for messages.
---@return string[]
function M.names()
  return suggest.names(M.kinds)
end

local function check_kind(kind, level)
  if kind == nil or not M.kinds[kind] then
    error(suggest.unknown("reason", tostring(kind), M.names()), level + 1)
  end
end

local function is_exit_code(code)
  return math.type(code) == "integer" and code >= 0 and code <= 255
end

-- What the host itself reads of a reason; other fields are the script's.
local FIELDS = {
  text = "string", signal = "string", pid = "integer", uid = "integer", code = "integer",
}

-- What is wrong with the fields of a reason, or nil.
local function fault_of(fields)
  for key, wanted in pairs(FIELDS) do
    local value = fields[key]
    local kind = math.type(value) or type(value)
    if value ~= nil and kind ~= wanted then
      return ("%s of a reason is a %s, not a %s"):format(key, wanted, kind)
    end
  end
  if fields.exit_code ~= nil and not is_exit_code(fields.exit_code) then
    return "exit_code of a reason is an integer from 0 to 255"
  end
end

local function make(kind, given)
  local fields = {}
  for key, value in pairs(given) do fields[key] = value end
  fields.kind = kind
  if fields.exit_code == nil then
    fields.exit_code = kind == "exit" and fields.code or M.kinds[kind].exit_code
  end
  local reason = setmetatable({}, Reason)
  fields_of[reason] = fields
  return reason
end

--- A new reason. Raises for a kind that is neither built in nor made by `extend`.
---@param kind string
---@param fields? table
---@return tide.Reason
function M.new(kind, fields)
  check_kind(kind, 2)
  local fault = fault_of(fields or {})
  if fault then error(fault, 2) end
  return make(kind, fields or {})
end

--- Adds a kind: `tide.reason.extend("hot-reload", { parent = "admin", exit_code = 0 })`.
---@param kind string
---@param options? { parent: string|nil, exit_code: integer|nil }
---@return fun(fields: table|nil): tide.Reason make
function M.extend(kind, options)
  options = options or {}
  if type(kind) ~= "string" or kind == "" then error("a reason needs a name", 2) end
  if M.kinds[kind] then error(("reason \"%s\" exists already"):format(kind), 2) end
  for key in pairs(options) do
    if key ~= "parent" and key ~= "exit_code" then
      error(suggest.unknown("option", key, { "parent", "exit_code" }), 2)
    end
  end
  if options.parent ~= nil then check_kind(options.parent, 2) end
  local code = options.exit_code
  if code == nil then code = options.parent and M.kinds[options.parent].exit_code or 0 end
  if not is_exit_code(code) then error("exit_code is an integer from 0 to 255", 2) end
  M.kinds[kind] = { exit_code = code, parent = options.parent }
  return function(fields) return M.new(kind, fields) end
end

--- Whether the value is a reason.
---@param value any
---@return boolean
function M.is_reason(value)
  return getmetatable(value) == Reason
end

--- What `run(reason)` may be given: a reason, the name of a kind, free words, a
--- table with a `kind`, or nothing. A word that is nearly a kind is refused:
--- "cluster-leavin" is a slip, not somebody's words.
---@param value tide.Reason|string|table|nil
---@return tide.Reason|nil reason
---@return string? message
function M.parse(value)
  if value == nil then return M.new("unknown") end
  if M.is_reason(value) then return value end
  if type(value) == "string" then
    if M.kinds[value] then return M.new(value) end
    if not value:find("%s") and suggest.nearest(value, M.names()) then
      return nil, suggest.unknown("reason", value, M.names())
    end
    return M.new("unknown", { text = value })
  end
  if type(value) ~= "table" then
    return nil, ("a reason is a name or a tide.reason, not a %s"):format(type(value))
  end
  if not M.kinds[value.kind] then
    return nil, suggest.unknown("reason", tostring(value.kind), M.names())
  end
  local fault = fault_of(value)
  if fault then return nil, fault end
  return make(value.kind, value)
end

--- Whether this reason is of that kind or of one that extends it.
---@param kind string
---@return boolean
function methods:is(kind)
  check_kind(kind, 2)
  local at = self.kind
  while at do
    if at == kind then return true end
    at = M.kinds[at] and M.kinds[at].parent
  end
  return false
end

--- The kinds of this reason, its own first: where per-reason settings are looked up.
---@return string[]
function methods:chain()
  local chain, at = {}, self.kind
  while at do
    chain[#chain + 1] = at
    at = M.kinds[at] and M.kinds[at].parent
  end
  return chain
end

function Reason:__tostring()
  local parts = {}
  if self.signal then parts[#parts + 1] = self.signal end
  -- 0: the kernel (Ctrl-C of a terminal), or a process outside the container
  if self.pid and self.pid > 0 then parts[#parts + 1] = ("from pid %d"):format(self.pid) end
  if self.code then parts[#parts + 1] = ("code %d"):format(self.code) end
  if self.text then parts[#parts + 1] = self.text end
  if #parts == 0 then return self.kind end
  return ("%s (%s)"):format(self.kind, table.concat(parts, " "))
end

--- Removes what `extend` added (tests).
function M.reset()
  for kind in pairs(M.kinds) do
    if not builtin[kind] then M.kinds[kind] = nil end
  end
end

return M
