--- Errors that belong to nobody: recorded, counted, and by policy the end of the process. Loaded
--- with the first.

local core = require "moontide.core"
local exit = require "moontide.exit"
local reasons = require "moontide.reason"
local record = require "moontide.pipeline.record"

local write = core.log.write

local M = {}

M.counts = {} -- kind -> how many, for the metrics

local function policy(kind)
  local config = require "moontide.config"
  return config.get(kind == "task" and "uncaught.task" or "uncaught.callback")
end

-- The core hands over an error with its stack in one text.
local function split(text)
  local at = text:find("\nstack traceback:\n", 1, true)
  if not at then return text, "" end
  return text:sub(1, at - 1), text:sub(at + #"\nstack traceback:\n")
end

--- An error that nobody caught: a record, a count, and by policy the end of the process.
---@param kind string "task", "luv callback", "timer", ...
---@param err any
---@param fields { task: string|nil, traceback: string|nil }|nil
function M.report(kind, err, fields)
  if exit.is_exit(err) then return end
  fields = fields or {}
  local text, stack = split(record.text(err))
  if stack == "" and text == tostring(core.coroutine.interrupted) then
    stack = record.stack(core.coroutine.traceback() or "")
  end
  M.counts[kind] = (M.counts[kind] or 0) + 1
  write(3, "lifecycle", ("uncaught error (%s): %s"):format(kind, text), "kind", kind,
    "task", fields.task, "traceback", fields.traceback or (stack ~= "" and stack or nil))
  if policy(kind) == "log" then return end
  -- It may have been interrupted for a stop signal that the loop could not take up: it came first.
  core.signals.deliver()
  exit.leave(reasons.new("uncaught-error", { text = text, source = kind }))
end

return M
