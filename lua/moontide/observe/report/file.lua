--- Report files: written beside their name and renamed, so that nobody reads half of one; the
--- newest few are kept.
local core = require "moontide.core"
local json = require "moontide.json"
local state_dir = require "moontide.state_dir"

local M = {}

local FORMAT = 1

-- Sorts by time as text.
local NAME = "^report%-%d+T%d+%.%d+Z%-%d+%.json$"

local function file_name(pid)
  local milliseconds = math.floor(core.clock.wall() * 1000)
  return ("report-%s.%03dZ-%d.json"):format(
    os.date("!%Y%m%dT%H%M%S", milliseconds // 1000), milliseconds % 1000, pid)
end

local function write_atomically(dir, name, text)
  local path, temporary = dir .. "/" .. name, dir .. "/." .. name .. ".tmp"
  local file, message = io.open(temporary, "wb")
  if not file then return nil, message end
  local written
  written, message = file:write(text)
  local closed, close_message = file:close()
  if written and closed then
    local renamed
    renamed, message = os.rename(temporary, path)
    if renamed then return path end
  end
  os.remove(temporary)
  return nil, message or close_message
end

-- Removes all but the newest. What cannot be removed stays.
local function prune(dir, keep)
  local found = {}
  for _, name in ipairs(core.files.list(dir) or {}) do
    if name:find(NAME) then found[#found + 1] = name end
  end
  table.sort(found)
  for i = 1, #found - keep do os.remove(dir .. "/" .. found[i]) end
end

-- Lists stay lists when they are empty.
local function mark_lists(summary)
  json.array(summary.pipelines)
  if summary.console then json.array(summary.console) end
  for _, drain in ipairs(json.array(summary.drains or {})) do json.array(drain.requests) end
  for _, pipeline in ipairs(summary.pipelines) do
    for _, key in ipairs { "phases", "blame", "chain" } do json.array(pipeline[key]) end
    for _, phase in ipairs(pipeline.phases) do
      json.array(phase.tasks)
      if phase.needs then json.array(phase.needs) end
    end
    for _, item in ipairs(pipeline.chain) do json.array(item.tasks) end
  end
end

---@param summary moontide.Report
---@param opts moontide.ReportOptions
---@return string? path
---@return string? message
function M.write(summary, opts)
  local made, message = state_dir.make(opts.dir)
  if not made then return nil, message end
  summary.format = FORMAT
  summary.pid = core.host.pid
  mark_lists(summary)
  local ok, text = pcall(json.encode, summary)
  if not ok then return nil, text end
  local path
  path, message = write_atomically(opts.dir, file_name(summary.pid), text .. "\n")
  if path then prune(opts.dir, opts.keep or 10) end
  return path, message
end

return M
