--- What a pipeline writes to the log of phases without tasks; and the texts of errors. Of phases
--- with tasks: `phase_record`; of what failed: `failure`.
--
-- Written on the core's log directly: no table is made for a record.

local core = require "moontide.core"

local write = core.log.write

local M = {}

--- Tells who has asked for it (`observers`) what begins and ends. False while nobody has, so that
--- it costs nobody a call.
---@type false|moontide.pipeline.Observer
M.observer = false

local DEBUG, INFO, WARN, ERROR = 0, 1, 2, 3
local function milliseconds(item)
  local from, to = item.started_at, item.ended_at or core.clock.now()
  return from and math.floor((to - from) * 1000 + 0.5) or 0
end
M.milliseconds = milliseconds

-- How long the __tostring of an error value may run, in seconds.
local TEXT_LIMIT = 0.1

--- The text of any error value; a string's traceback is not part of it. The value is the script's:
--- its __tostring may raise or spin, and neither may reach who writes the record.
---@return string
function M.text(err)
  if type(err) == "string" then return err end
  local co = core.coroutine.create(tostring)
  local ok, text = core.coroutine.resume(co, core.clock.now() + TEXT_LIMIT, err)
  return ok and text or ("(a %s whose __tostring fails)"):format(type(err))
end

--- A traceback without its first line.
---@param traceback string of debug.traceback
---@return string
function M.stack(traceback)
  return (traceback:gsub("^\n?stack traceback:\n", ""))
end

--- A phase that has no tasks.
function M.phase_passed(run, name)
  write(DEBUG, "lifecycle", run.kind .. " phase ok", "phase", name, "duration_ms", 0, "tasks", 0,
    "outcome", "ok")
end

--- A phase that does not run, with the number of tasks that so do not run either.
function M.phase_skipped(run, name, count, why)
  local level = (count == 0 and why ~= "disabled") and DEBUG or INFO
  write(level, "lifecycle", ("%s phase %s: %s"):format(run.kind,
    why == "disabled" and "disabled" or "skipped", name),
    "phase", name, "tasks", count, "outcome", "skipped", "why", why)
end

M.levels = { DEBUG = DEBUG, INFO = INFO, WARN = WARN, ERROR = ERROR }

return M
