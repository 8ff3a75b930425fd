--- Report files, read again: found, decoded, and checked as far as those who show them rely on it.
local core = require "moontide.core"
local json = require "moontide.json"
local text = require "moontide.text"

local M = {}

--- What `observe/report/file.lua` writes.
local FORMAT = 1

--- The reports in a directory, oldest first.
---@param dir string
---@return string[]|nil paths nil when the directory cannot be read
function M.list(dir)
  local names = core.files.list(dir)
  if not names then return nil end
  local paths = {}
  for _, name in ipairs(names) do
    if name:find "^report%-.*%.json$" then paths[#paths + 1] = name end
  end
  table.sort(paths) -- a name begins with its time
  for i, name in ipairs(paths) do paths[i] = dir .. "/" .. name end
  return paths
end

-- Names and messages are a script's: what a terminal or an XML reader would take for more than text
-- is not passed on. Tracebacks keep their lines.
local function clean(value)
  if type(value) == "string" then
    return (text.repair(value):gsub("[%z\1-\8\11-\31\127]", "\u{FFFD}"))
  end
  if type(value) == "table" then
    for key, item in pairs(value) do value[key] = clean(item) end
  end
  return value
end

local function is_list(value)
  return type(value) == "table" and (value[1] ~= nil or next(value) == nil)
end

local function is_number(value) return value == nil or math.type(value) ~= nil end

-- What every item has, whatever a later version adds.
local function wrong_item(item)
  return type(item) ~= "table" or type(item.name) ~= "string" or type(item.outcome) ~= "string"
    or not is_number(item.at) or not is_number(item.seconds) or not is_number(item.timeout)
end

local function wrong_phase(phase)
  if wrong_item(phase) or not is_list(phase.tasks) then return true end
  for _, task in ipairs(phase.tasks) do
    if wrong_item(task) then return true end
  end
end

local function wrong_pipeline(pipeline)
  if type(pipeline) ~= "table" or type(pipeline.kind) ~= "string"
    or type(pipeline.outcome) ~= "string" or math.type(pipeline.started) == nil
    or math.type(pipeline.seconds) == nil or not is_number(pipeline.total)
    or not is_list(pipeline.phases) or not is_list(pipeline.chain) then
    return true
  end
  for _, phase in ipairs(pipeline.phases) do
    if wrong_phase(phase) then return true end
  end
end

local function wrong_intervention(item)
  return type(item) ~= "table" or type(item.action) ~= "string" or type(item.reason) ~= "string"
    or not is_number(item.time)
end

local function wrong_console(list)
  if list == nil then return false end
  if not is_list(list) then return true end
  for _, item in ipairs(list) do
    if wrong_intervention(item) then return true end
  end
end

local function fault(report)
  if type(report) ~= "table" or report.format == nil then return "it is no exit report" end
  if report.format ~= FORMAT then
    return ("its format is %s, this moontide reads %d"):format(tostring(report.format), FORMAT)
  end
  if not is_list(report.pipelines) or math.type(report.exit_code) ~= "integer" then
    return "it is a damaged exit report"
  end
  if wrong_console(report.console) then return "it is a damaged exit report" end
  for _, pipeline in ipairs(report.pipelines) do
    if wrong_pipeline(pipeline) then return "it is a damaged exit report" end
  end
end

--- Reads a report.
---@param path string
---@return moontide.Report|nil
---@return string|nil message
function M.read(path)
  local file, message = io.open(path, "rb")
  if not file then return nil, message end
  local content
  content, message = file:read "a"
  file:close()
  if not content then return nil, ("%s: %s"):format(path, message) end
  local report = json.decode(content)
  local wrong = fault(report)
  if wrong then return nil, ("%s: %s"):format(path, wrong) end
  return clean(report)
end

return M
