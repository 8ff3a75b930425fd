--- The `ctx` of a task: its own deadline and log, and for every other name the table that all
-- tasks of the pipeline share.

local clock = require("moontide.core").clock

local M = {}

-- Keys of the per-task table that no script can collide with.
local DEADLINE, SHARED, NAMES = {}, {}, {}

---@class moontide.Context
---@field log moontide.Logger with the fields phase and task
local methods = {}

--- When this task will be cancelled, on the scale of `tide.now()`.
---@return number|nil seconds nil when nothing limits it
function methods:deadline()
  return rawget(self, DEADLINE)
end

--- What is left until the deadline.
---@return number|nil seconds never below 0; nil when nothing limits it
function methods:remaining()
  local at = rawget(self, DEADLINE)
  return at and math.max(0, at - clock.now())
end

local function logger_of(ctx)
  local names = rawget(ctx, NAMES)
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
  return rawget(self, SHARED)[key]
end

function Context:__newindex(key, value)
  if methods[key] or key == "log" then
    error(("ctx.%s belongs to the host; choose another name"):format(key), 2)
  end
  rawget(self, SHARED)[key] = value
end

---@param shared table the pipeline's own
---@param entry moontide.Entry
---@param deadline number|nil
---@return moontide.Context
function M.new(shared, entry, deadline)
  return setmetatable({ [DEADLINE] = deadline, [SHARED] = shared, [NAMES] = entry }, Context)
end

return M
