--- `mem()`: what Lua and the process use of memory.
local arguments = require "moontide.console.inspect.arguments"
local view = require "moontide.view"

local M = {}

--- Lua's bytes, what collects them, and the process's; in any state, and without a task.
---@return { lua: integer, collector: string, running: boolean, resident: integer|nil,
--- arena_taken: integer|nil, arena_size: integer|nil, limit: integer|nil, limit_used: integer|nil }
function M.collect()
  local data = require("moontide.core.look").memory()
  data.lua = math.floor(collectgarbage "count" * 1024)
  data.running = collectgarbage "isrunning"
  return data
end

local function render(data)
  local rows = {
    { "Lua", view.bytes(data.lua), ("collector: %s%s"):format(data.collector,
      data.running and "" or ", stopped") },
    { "resident", view.bytes(data.resident), "the whole process" },
  }
  if data.arena_size then
    rows[#rows + 1] = { "arena", view.bytes(data.arena_taken),
      ("of %s, for the first small objects of Lua"):format(view.bytes(data.arena_size)) }
  end
  if data.limit then
    rows[#rows + 1] = { "limit", view.bytes(data.limit),
      ("of Lua's memory; %s are used"):format(view.bytes(data.limit_used)) }
  end
  return view.columns({ "memory", ">bytes", "" }, rows)
end

--- What memory there is, by whose it is.
---@return table
function M.mem(...)
  arguments.none("mem", ...)
  return view.new(M.collect(), render)
end

return M
