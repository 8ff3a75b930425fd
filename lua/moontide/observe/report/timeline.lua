--- A report as an SVG timeline: a bar for each phase and task, startup above shutdown. Pure.
local rows = require "moontide.observe.report.rows"
local view = require "moontide.view"

local M = {}

-- In pixels.
local LABELS, BARS, LINE, MARGIN = 300, 700, 18, 12
local HEADING = 26

local COLOURS = { ok = "#4a90d9", skipped = "#b8b8b8" }
local TROUBLE, PHASE = "#d9534f", "#dfe6ee"

local ESCAPES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ["\""] = "&quot;" }

local function escape(text) return (text:gsub("[&<>\"]", ESCAPES)) end

local function label(x, y, text, more)
  return ("<text x=\"%d\" y=\"%d\"%s>%s</text>\n"):format(x, y, more or "", escape(text))
end

-- What a pointer over the bar shows.
local function hint(row)
  local text = ("%s: %s"):format(row.name, row.outcome)
  if row.seconds then text = ("%s, %s"):format(text, view.time(row.seconds)) end
  local why = row.item.error or row.item.why
  return why and ("%s\n%s"):format(text, why) or text
end

local function bar(row, y, whole)
  local scale = whole > 0 and BARS / whole or 0
  local width = math.max((row.seconds or 0) * scale, 1)
  local colour = row.phase and row.outcome == "ok" and PHASE or COLOURS[row.outcome] or TROUBLE
  local edge = row.critical and " stroke=\"#333\"" or ""
  return ("<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"%s>"
    .. "<title>%s</title></rect>\n"):format(MARGIN + LABELS + row.at * scale, y - LINE + 6, width,
    LINE - 4, colour, edge, escape(hint(row)))
end

-- Appends a pipeline below y and returns where the next one begins.
local function add_pipeline(out, pipeline, y)
  y = y + HEADING
  out[#out + 1] = label(MARGIN, y, ("%s %s in %s"):format(pipeline.kind, pipeline.outcome,
    view.time(pipeline.seconds)), " font-weight=\"bold\"")
  local list, empty = rows.of(pipeline)
  for _, row in ipairs(list) do
    y = y + LINE
    out[#out + 1] = label(MARGIN + (row.phase and 0 or 14), y, row.name)
    if row.at then out[#out + 1] = bar(row, y, pipeline.seconds) end
  end
  if empty > 0 then
    y = y + LINE
    out[#out + 1] = label(MARGIN, y, ("and %d empty phases"):format(empty), " fill=\"#777\"")
  end
  return y
end

--- The whole report as an SVG document.
---@param report moontide.Report
---@return string
function M.svg(report)
  local out, y = { "" }, MARGIN + LINE
  out[2] = label(MARGIN, y, ("%s, process %s, exit code %d"):format(report.name or "unnamed",
    report.pid or "?", report.exit_code), " font-weight=\"bold\"")
  for _, pipeline in ipairs(report.pipelines) do y = add_pipeline(out, pipeline, y) end
  y = y + HEADING
  out[#out + 1] = label(MARGIN, y, "framed: the end waited for it", " fill=\"#777\"")
  out[1] = ("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
    .. "font-family=\"sans-serif\" font-size=\"12\">\n"
    .. "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"):format(
    2 * MARGIN + LABELS + BARS, y + MARGIN)
  out[#out + 1] = "</svg>\n"
  return table.concat(out)
end

return M
