--- Processes that let nobody in, because their loop has not turned since they began: their watchdog
--- answers all the same, and knows what they are at.
local files = require "moontide.control_files"
local silence = require "moontide.cli.silence"

local M = {}

local HINT = "it has no console now; its watchdog, which `echo interrupt | nc -U %s` can ask, too:"

--- What to say of those that are meant, when no other is; nil: there is none of them either.
---@param directories string[]
---@param fits fun(found: moontide.ControlFile): boolean
---@return string|nil
function M.message(directories, fits)
  local said = {}
  for _, directory in ipairs(directories) do
    for _, found in ipairs(files.list(directory, "oob")) do
      local console = found.path:gsub("%.oob$", ".sock")
      local text = fits(found) and silence.new(console):report()
      if text then
        said[#said + 1] = ("process %d (%s) lives, but %s\n%s"):format(found.pid, found.name,
          HINT:format(found.path), (text:gsub("\n+$", "")))
      end
    end
  end
  return said[1] and table.concat(said, "\n")
end

return M
