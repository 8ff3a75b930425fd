--- The `ctx` of a task: its own deadline and log, and for every other name the table that all
-- tasks of the pipeline share.

local clock = require("moontide.core").clock

local M = {}

-- The one key of the per-task table, which no script can collide with.
local ENTRY = {}

---@class moontide.Context
---@field log moontide.Logger with the fields phase and task
local methods = {}

--- When this task will be cancelled, on the scale of `tide.now()`.
---@return number|nil seconds nil when nothing limits it
function methods:deadline()
  return self[ENTRY].deadline or nil
end

--- What is left until the deadline.
---@return number|nil seconds never below 0; nil when nothing limits it
function methods:remaining()
  local at = self[ENTRY].deadline
  return at and math.max(0, at - clock.now()) or nil
end

local function logger_of(ctx)
  local names = ctx[ENTRY]
  local base = require("moontide.observe.log").for_component("app")
  local bound = {}
  for _, level in ipairs { "debug", "info", "warn", "error" } do
    bound[level] = function(message, fields)
      local all = { phase = names.phase, task = names.name }
      for key, value in pairs(fields or {}) do all[key] = value end
      return base[level](message, all)
    end
  end
  rawset(ctx, "log", bound)
  return bound
end

local Context = {}

function Context:__index(key)
  local method = methods[key]
  if method then return method end
  if key == "log" then return logger_of(self) end
  return rawget(self, ENTRY).phase_run.run.shared[key]
end

function Context:__newindex(key, value)
  if methods[key] or key == "log" then
    error(("ctx.%s belongs to the host; choose another name"):format(key), 2)
  end
  rawget(self, ENTRY).phase_run.run.shared[key] = value
end

---@param entry moontide.Entry one that runs
---@return moontide.Context
function M.new(entry)
  return setmetatable({ [ENTRY] = entry }, Context)
end

return M
