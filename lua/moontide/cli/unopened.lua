--- Processes that let nobody in, because their loop has not turned since they began: their watchdog
--- answers all the same, and knows what they are at.
local core = require "moontide.core"
local files = require "moontide.control_files"
local native = require "moontide.core.client"
local silence = require "moontide.cli.silence"

local M = {}

local HINT = "it has no console now; its watchdog, which `echo interrupt | nc -U %s` can ask, too:"

-- What a watchdog knows; the line that a dead process has left goes.
local function ask(found)
  local connection, name = native.connect(found.path)
  if connection then
    connection:close()
    return silence.new((found.path:gsub("%.oob$", ".sock"))):report()
  elseif name == "ECONNREFUSED" and not core.files.list("/proc/" .. found.pid) then
    os.remove(found.path)
  end
end

--- What to say of those that are meant, when no other is; nil: there is none of them either.
---@param directories string[]
---@param fits fun(found: moontide.ControlFile): boolean
---@return string|nil
function M.message(directories, fits)
  local said = {}
  for _, directory in ipairs(directories) do
    for _, found in ipairs(files.list(directory, "oob")) do
      local text = fits(found) and ask(found)
      if text then
        said[#said + 1] = ("process %d (%s) lives, but %s\n%s"):format(found.pid, found.name,
          HINT:format(found.path), (text:gsub("\n+$", "")))
      end
    end
  end
  return said[1] and table.concat(said, "\n")
end

return M
