--- A folder for a spec that has the host's loop in its own process (`support.process` turns the
--- loop itself, which a host does not allow).
---
---     local folder = require "support.folder"
---     after_each(folder.remove)
---     local path = folder.make()
local M = {}

local made = {}

---@return string path
function M.make()
  local name = os.tmpname()
  os.remove(name)
  assert(os.execute(("mkdir -m 700 %s"):format(name)))
  made[#made + 1] = name
  return name
end

--- Removes all that were made.
function M.remove()
  for i, path in ipairs(made) do
    os.execute(("rm -rf %s"):format(path))
    made[i] = nil
  end
end

return M
