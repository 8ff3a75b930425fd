--- Families as text: the Prometheus format 0.0.4, and OpenMetrics 1.0.0 for those who prefer it.
local text = require "moontide.text"

local M = {}

M.PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
M.OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

-- ---- numbers and strings ----------------------------------------------------------------------

local function number(value)
  if math.type(value) == "integer" then return ("%d"):format(value) end
  if value ~= value then return "NaN" end -- Lua may say -nan, which no reader knows
  if value == math.huge then return "+Inf" end
  if value == -math.huge then return "-Inf" end
  return text.float(value)
end

--- OpenMetrics wants the bounds of buckets as floats.
local function bound(value, open)
  local digits = number(value)
  return open and digits:find("^-?%d+$") and digits .. ".0" or digits
end

local ESCAPES = { ["\\"] = "\\\\", ["\n"] = "\\n", ['"'] = '\\"' }

local function escape_value(value)
  return (value:gsub('[\\\n"]', ESCAPES))
end

local function escape_help(help, open)
  return (help:gsub(open and '[\\\n"]' or "[\\\n]", ESCAPES))
end

-- ---- samples ----------------------------------------------------------------------------------

--- `{a="1",le="0.5",z="2"}`, sorted by name, with `le` in its place; "" without labels.
local function label_text(family, series, le)
  local parts = {}
  for i, name in ipairs(family.labels) do
    if le and name > "le" then
      parts[#parts + 1] = ('le="%s"'):format(le)
      le = nil
    end
    parts[#parts + 1] = ('%s="%s"'):format(name, escape_value(series.labels[i]))
  end
  if le then parts[#parts + 1] = ('le="%s"'):format(le) end
  return #parts > 0 and "{" .. table.concat(parts, ",") .. "}" or ""
end

local function histogram_samples(family, series, labels, open, out)
  local name, total = family.name, 0
  for i, count in ipairs(series.counts) do
    total = total + count
    local le = bound(family.buckets[i] or math.huge, open)
    out[#out + 1] = ("%s_bucket%s %d\n"):format(name, label_text(family, series, le), total)
  end
  out[#out + 1] = ("%s_sum%s %s\n"):format(name, labels, number(series.sum))
  out[#out + 1] = ("%s_count%s %d\n"):format(name, labels, total)
end

--- The series with their label texts, in the order of these.
local function sorted_series(family)
  local list = {}
  for _, series in next, family.series do
    list[#list + 1] = { text = label_text(family, series), series = series }
  end
  table.sort(list, function(a, b) return a.text < b.text end)
  return list
end

local function family_text(family, open, out)
  local list = sorted_series(family)
  if #list == 0 then return end
  -- In OpenMetrics a counter's family has not the _total of its sample.
  local name = open and family.kind == "counter" and family.name:sub(1, -7) or family.name
  out[#out + 1] = ("# HELP %s %s\n"):format(name, escape_help(family.help, open))
  out[#out + 1] = ("# TYPE %s %s\n"):format(name, family.kind)
  for _, item in ipairs(list) do
    if family.buckets then
      histogram_samples(family, item.series, item.text, open, out)
    else
      out[#out + 1] = ("%s%s %s\n"):format(family.name, item.text, number(item.series.value))
    end
  end
end

--- The text of families that are sorted by name.
---@param families moontide.Family[]
---@param open boolean OpenMetrics
---@return string text
---@return string content_type
function M.render(families, open)
  local out = {}
  for _, family in ipairs(families) do family_text(family, open, out) end
  if open then out[#out + 1] = "# EOF\n" end
  return table.concat(out), open and M.OPEN_METRICS or M.PROMETHEUS
end

-- ---- which format -----------------------------------------------------------------------------

--- Whether this Accept header prefers OpenMetrics; plain text otherwise.
---@param accept string?
---@return boolean
function M.wants_open_metrics(accept)
  local best_open, best_text = 0, 0
  for item in (accept or ""):lower():gmatch("[^,]+") do
    local kind = item:match("^%s*([^;%s]+)")
    local quality = tonumber(item:match(";%s*q=([%d.]+)") or 1) or 0
    local version = item:match(";%s*version=\"?([%d.]+)")
    if kind == "application/openmetrics-text" and (not version or version == "1.0.0") then
      best_open = math.max(best_open, quality)
    elseif kind == "text/plain" then
      best_text = math.max(best_text, quality)
    end
  end
  return best_open > 0 and best_open >= best_text
end

return M
