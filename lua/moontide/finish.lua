--- The last words of a shutdown: the report, the record of the exit, and the termination log.

local core = require "moontide.core"
local record = require "moontide.pipeline.record"

local write = core.log.write

local M = {}

local TERMINATION_LOG = "/dev/termination-log"

--- Writes the last fatal reason where the kubelet looks for it, if that file exists.
---@param text string
function M.last_words(text)
  local file = io.open(TERMINATION_LOG, "r+")
  if not file then return end
  file:write(text:sub(1, 4096), "\n")
  file:close()
end

-- Why the process ends badly, in one line; nil when it does not.
local function fatal_text(shutdown, code, decisive)
  if code == 0 then return nil end
  local failure = shutdown.run_state and shutdown.run_state.failure
  local why = tostring(shutdown.reason)
  if decisive then why = ("%s; then %s"):format(why, tostring(decisive)) end
  if failure then why = why .. "; " .. (failure.message or failure.name) end
  return ("exit %d: %s"):format(code, why)
end

-- A log that overflowed would swallow the report as well: its reader gets half of the time that is
-- kept for the end to catch up before it, the rest comes after it.
local function make_room(shutdown)
  if core.log.dropped() == 0 then return end
  local half = require("moontide.config").get "log.close_timeout" / 2
  local run = shutdown.run_state
  if run then half = math.min(half, math.max(0, run.total_end - core.clock.now()) / 2) end
  core.log.flush(half)
  core.host.set_log_timeout(half)
end

local function report(shutdown, code)
  local ok, summary = xpcall(function()
    return require("moontide.observe.report").finish(require "moontide.startup", shutdown, code)
  end, debug.traceback)
  if ok then return summary end
  write(2, "lifecycle", "no exit report: " .. record.text(summary))
end

-- What those who look in have to do with it, if there was one.
local function console(what, ...)
  local server = package.loaded["moontide.console.server"]
  if not server then return end
  local ok, err = pcall(server[what], ...)
  if not ok then write(2, "console", "the clients were not told: " .. record.text(err)) end
end

--- Nobody finds the host any more, if it is part of a program that goes on.
function M.leave()
  local control = package.loaded["moontide.control"]
  if control then control.leave() end
end

--- Lets go of what may take a moment; called before the state is `stopped`.
---@async
---@param shutdown moontide.Shutdown
function M.part(shutdown)
  local run = shutdown.run_state
  console("part", run and run.total_end)
end

-- The script's own sinks have what the core's log has for its end, and no more than what is left.
local function close_sinks(shutdown)
  local sinks = package.loaded["moontide.observe.sink"]
  if not sinks then return end
  local run, seconds = shutdown.run_state, require("moontide.config").get "log.close_timeout"
  if run then seconds = math.min(seconds, math.max(0, run.total_end - core.clock.now()) / 2) end
  local ok, err = pcall(sinks.finish, seconds)
  if not ok then write(2, "log", "the sinks were not closed: " .. record.text(err)) end
end

--- Writes all of it; called once, when the last phase is over.
---@param shutdown moontide.Shutdown
---@param code integer
---@param decisive tide.Reason|nil a later reason, when the code is its
function M.finish(shutdown, code, decisive)
  make_room(shutdown)
  local summary = report(shutdown, code)
  local text = fatal_text(shutdown, code, decisive)
  if text then M.last_words(text) end
  local level = code == 0 and 1 or 3
  write(level, "lifecycle", "stopped", "exit_code", code, "reason", shutdown.reason.kind,
    "duration_ms", math.floor((core.clock.now() - shutdown.started_at) * 1000 + 0.5),
    "why", text or tostring(shutdown.reason))
  console("finish", summary)
  M.leave()
  close_sinks(shutdown)
end

return M
