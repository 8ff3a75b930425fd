--- `work()`: what is in flight, which is what a drain waits for: requests by listener, jobs by
--- route, a program's own work.
local arguments = require "moontide.console.inspect.arguments"
local core = require "moontide.core"
local json = require "moontide.json"
local view = require "moontide.view"

local M = {}

---@class moontide.inspect.Work
---@field name string
---@field active integer
---@field total integer|nil of all that was ever taken up; nil for a program's own

local function add_program(list)
  for _, kind in ipairs(require("moontide.core.look").work()) do
    list[#list + 1] = { name = "program:" .. kind.name, active = kind.active }
  end
end

--- All kinds, by name; in any state, and without a task.
---@return moontide.inspect.Work[]
---@return integer active of all
function M.list()
  local list, active = json.array {}, 0
  for _, kind in ipairs(require("moontide.core.work").all()) do list[#list + 1] = kind end
  if core.host.mode == "embedded" then add_program(list) end
  table.sort(list, function(a, b) return a.name < b.name end)
  for _, kind in ipairs(list) do active = active + kind.active end
  return list, active
end

local function render(data)
  local rows = {}
  for i, kind in ipairs(data.kinds) do rows[i] = { kind.name, kind.active, kind.total } end
  return view.lines(data.active .. " in flight", #rows > 0
    and view.columns({ "what", ">in flight", ">in all" }, rows) or nil)
end

---@return { active: integer, kinds: moontide.inspect.Work[] }
function M.work(...)
  arguments.none("work", ...)
  local kinds, active = M.list()
  return view.new({ active = active, kinds = kinds }, render)
end

return M
