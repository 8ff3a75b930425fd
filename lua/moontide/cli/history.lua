--- The history of the console: a file of lines that only its user can read.
local native = require "moontide.core.client"

local M = {
  --- Lines that are kept; the file may grow to twice as many before it is cut.
  KEEP = 1000,
}

---@class moontide.cli.History
---@field path string|nil nil: there is no place for it
---@field last string|nil
local History = {}
History.__index = History

local function place()
  local state = os.getenv "XDG_STATE_HOME"
  if not state or state:sub(1, 1) ~= "/" then
    local home = os.getenv "HOME"
    if not home or home:sub(1, 1) ~= "/" then return nil end
    state = home .. "/.local/state"
  end
  return state .. "/moontide"
end

local function read_lines(path)
  local lines = {}
  local file = io.open(path, "r")
  if not file then return lines end
  for line in file:lines() do lines[#lines + 1] = line end
  file:close()
  return lines
end

--- Opens the history, and tells its lines to `each`, the oldest first.
---@param each fun(line: string)
---@return moontide.cli.History
---@return string|nil message why nothing will be kept
function M.open(each)
  local folder = place()
  if not folder then return setmetatable({}, History), "neither XDG_STATE_HOME nor HOME is set" end
  local made, message = require("moontide.state_dir").make(folder)
  if not made then return setmetatable({}, History), message end
  local self = setmetatable({ path = folder .. "/history" }, History)
  local lines = read_lines(self.path)
  local first = math.max(1, #lines - M.KEEP + 1)
  for i = first, #lines do each(lines[i]) end
  self.last = lines[#lines]
  if #lines > 2 * M.KEEP then
    native.append(self.path, table.concat(lines, "\n", first) .. "\n", true)
  end
  return self
end

--- Keeps a line, but for one that repeats the last, or begins with a space: that one is not to be
--- kept, as in a shell.
---@param line string
---@return boolean kept
---@return string|nil message why no more lines go to the file; said once
function History:add(line)
  if line == self.last or line:find "^%s" or line == "" then return false end
  self.last = line
  if self.path then
    local ok, message = native.append(self.path, line .. "\n")
    if not ok then
      self.path = nil
      return true, message
    end
  end
  return true
end

return M
