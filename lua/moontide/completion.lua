--- What `tide.shutdown:run()` returns: the one run of the shutdown, for all who asked for it.

local task = require "moontide.task"

local M = {}

---@class moontide.Completion
---@field code integer|nil the exit code, once it is over
local Completion = {}
Completion.__index = Completion

function M.new()
  return setmetatable({ event = task.event "shutdown" }, Completion)
end

function Completion:is_done()
  return self.code ~= nil
end

--- Ends it.
function Completion:finish(code)
  self.code = code
  self.event:set(code)
end

local WAITED_FOR = {
  ["phase task"] = "a task of the pipeline", handler = "a request handler", worker = "a worker",
  hook = "a shutdown hook", attempts = "a task of the pipeline",
}

-- What of the drain's own the running task belongs to, or nil.
local function waited_for()
  local at = task.current()
  while at do
    local what = WAITED_FOR[at.kind]
    if what then return what, at.name end
    at = at.scope.owner
  end
end

local SelfWait = {
  __tostring = function(err) return err.message end,
}

--- Waits until the process is about to stop. Raises `self_wait` in anything that the shutdown
--- itself waits for: it would wait for itself.
---@async
---@return integer code
function Completion:await()
  if self.code then return self.code end
  if not task.current() then
    require("moontide.site").fail "the shutdown can be awaited in a task only, not in a callback"
  end
  local what, name = waited_for()
  if what then
    error(setmetatable({ kind = "self_wait", message =
      ("self_wait: %s (%s) waits for the shutdown that waits for it"):format(name or "?", what) },
      SelfWait), 2)
  end
  self.event:wait()
  return self.code
end

return M
