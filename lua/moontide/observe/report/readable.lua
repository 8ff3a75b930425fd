--- A report as text for a terminal: what ended how, when, and what the end waited for. Pure.
local duration = require "moontide.duration"
local rows = require "moontide.observe.report.rows"
local view = require "moontide.view"

local M = {}

local BAR = 24
local HEAD = { "", "", "outcome", "at", "took", "" }

-- The row's place between the start and the end of its pipeline.
local function bar(row, whole)
  if not row.at or whole <= 0 then return (" "):rep(BAR) end
  local from = math.min(math.floor(row.at / whole * BAR), BAR - 1)
  local to = math.ceil((row.at + (row.seconds or 0)) / whole * BAR)
  local length = math.max(math.min(to, BAR) - from, 1)
  return (" "):rep(from) .. (row.phase and "-" or "="):rep(length)
    .. (" "):rep(BAR - from - length)
end

local function table_of(pipeline, list)
  local cells = {}
  for _, row in ipairs(list) do
    cells[#cells + 1] = {
      row.critical and "*" or " ", (row.phase and "" or "  ") .. row.name, row.outcome,
      view.time(row.at), view.time(row.seconds), "|" .. bar(row, pipeline.seconds) .. "|",
    }
  end
  return view.columns(HEAD, cells, view.WHOLE) .. "\n"
end

local function trouble(row)
  local item = row.item
  local why = item.error or item.why
  if not why then return nil end
  local text = ("  %s: %s\n"):format(row.name, why)
  if item.traceback then text = text .. item.traceback:gsub("\t", "      ") .. "\n" end
  return text
end

local function pipeline_text(pipeline)
  local list, empty = rows.of(pipeline)
  local parts = { ("%s %s in %s%s, began %s\n"):format(pipeline.kind, pipeline.outcome,
    view.time(pipeline.seconds), pipeline.total and " of " .. duration.format(pipeline.total) or "",
    os.date("!%Y-%m-%d %H:%M:%SZ", math.floor(pipeline.started))) }
  parts[2] = #list > 0 and table_of(pipeline, list) or "  nothing was to be done\n"
  if #list > 0 and empty > 0 then parts[3] = ("  and %d empty phases\n"):format(empty) end
  for _, row in ipairs(list) do parts[#parts + 1] = trouble(row) end
  return table.concat(parts)
end

local function drain_text(drain)
  local lines = { ("listener %s: %d answered while draining, %d idle connections closed, "
    .. "%d accepted late, %d forced\n"):format(drain.listener, drain.served or 0,
    drain.closed_idle or 0, drain.drained or 0, drain.forced or 0) }
  for _, request in ipairs(drain.requests or {}) do
    lines[#lines + 1] = ("  forced: %s %s, %s old, %d bytes sent\n"):format(request.method,
      request.path, view.time(request.age), request.bytes or 0)
  end
  return table.concat(lines)
end

-- What was done by hand.
local function by_hand(report)
  local lines = {}
  for _, item in ipairs(report.console or {}) do
    local time = item.time and os.date("!%H:%M:%SZ", math.floor(item.time)) or "?"
    lines[#lines + 1] = ("  %s %s%s, by %s of user %s: %s\n"):format(time, item.action,
      item.target and " " .. tostring(item.target) or "", tostring(item.comm or "a process"),
      tostring(item.uid or "?"), item.reason)
  end
  return #lines > 0 and "done at the console:\n" .. table.concat(lines) or nil
end

--- The whole report.
---@param report moontide.Report
---@return string
function M.text(report)
  local parts = { ("%s, process %s, exit code %d%s\n"):format(report.name or "unnamed",
    report.pid or "?", report.exit_code,
    report.reason and ": " .. (report.reason.text or report.reason.kind or "?") or "") }
  for _, pipeline in ipairs(report.pipelines) do parts[#parts + 1] = pipeline_text(pipeline) end
  for _, drain in ipairs(report.drains or {}) do parts[#parts + 1] = drain_text(drain) end
  parts[#parts + 1] = by_hand(report)
  local text = table.concat(parts, "\n")
  if text:find "\n  %* " then text = text .. "\n* the end waited for it\n" end
  return text
end

return M
