--- The exit report: what every phase and task came to, which took longest, and which of them the
--- end had to wait for. It goes to the log, and as JSON into a directory.
---
--- `report.write` takes plain tables and knows no pipeline; `report.finish` makes them.
local core = require "moontide.core"

local M = {}

---@class moontide.ReportTask
---@field name string
---@field outcome string "ok", "failed", "timed_out", "cancelled", "abandoned", "skipped", ...
---@field at number? seconds from the start of the pipeline; nil: it never started
---@field seconds number? how long it took
---@field attempts integer?
---@field after string? the task of its phase that it waited for
---@field error string? why it did not end well
---@field limit string? the limit that it passed
---@field traceback string?

---@class moontide.ReportPhase
---@field name string
---@field outcome string "ok", "failed", "cancelled", "skipped"
---@field why string? why it was skipped
---@field at number? seconds from the start of the pipeline
---@field seconds number?
---@field timeout number? seconds
---@field needs string[]? phases it waited for; nil: the one before it
---@field tasks moontide.ReportTask[]

---@class moontide.ReportPipeline
---@field kind "startup"|"shutdown"
---@field outcome string "ok", "failed", "stopped"
---@field started number Unix time
---@field seconds number
---@field total number? its budget in seconds
---@field phases moontide.ReportPhase[] in the order they ran
---@field blame table[]? set by `write`: tasks, longest first
---@field chain table[]? set by `write`: phases, each with the task that ended last

---@class moontide.ReportDrain
---@field listener string
---@field served integer answers since the move to draining
---@field closed_idle integer idle connections closed
---@field queued integer clients in the accept queue when it was gated
---@field drained integer connections accepted from then on
---@field forced integer requests and answers ended by force
---@field requests { method: string, path: string, age: number, bytes: integer }[] the first of them

---@class moontide.Report
---@field name string?
---@field version string
---@field pid integer
---@field exit_code integer
---@field reason { kind: string, text: string }?
---@field drains moontide.ReportDrain[]? by listener
---@field console moontide.Intervention[]? what was done to it by hand
---@field pipelines moontide.ReportPipeline[]

---@class moontide.ReportOptions
---@field dir string? where the JSON goes; nil: nowhere
---@field keep integer? how many reports stay there; default 10

--- Writes the report. Never raises and never waits for a disk (no fsync).
---@param summary moontide.Report
---@param opts moontide.ReportOptions?
function M.write(summary, opts)
  local analysis = require "moontide.observe.report.analysis"
  local lines = require "moontide.observe.report.lines"
  for _, pipeline in ipairs(summary.pipelines) do
    pipeline.blame = analysis.blame(pipeline)
    pipeline.chain = analysis.chain(pipeline)
    lines.write(pipeline)
  end
  if not (opts and opts.dir) then return end
  local path, message = require("moontide.observe.report.file").write(summary, opts)
  if path then
    core.log.write(0, "report", "report written", "path", path)
  else
    core.log.write(2, "report", "the report could not be written: " .. message, "dir", opts.dir)
  end
end

--- Where the configuration has the reports of a process go; nil: nowhere.
---@return string|nil
function M.dir()
  local set = require("moontide.config").get "report.dir"
  if set then return set end
  local state = require("moontide.state_dir").path()
  return state and state .. "/reports"
end

-- In a program that only embeds the host, nowhere unless it was asked for.
local function options()
  local config = require "moontide.config"
  local keep = config.get "report.keep"
  if keep == 0 or core.host.mode ~= "process" and not config.get "report.dir" then return nil end
  local dir = M.dir()
  if dir then return { dir = dir, keep = keep } end
  core.log.write(2, "report", "no report is kept: set report.dir, state_dir or $HOME")
end

--- Writes the report of a process that ends; called once, before the logs are flushed.
---@param startup moontide.Startup
---@param shutdown moontide.Shutdown
---@param code integer
---@return moontide.Report
function M.finish(startup, shutdown, code)
  local summary = require("moontide.observe.report.summary").make(startup, shutdown, code)
  M.write(summary, options())
  return summary
end

return M
