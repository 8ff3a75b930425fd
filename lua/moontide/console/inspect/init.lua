--- What one can ask a running process: each command is a function that returns plain data, with a
--- metatable whose `__console` shows it as a table of text. All are loaded with their first use,
--- work in every state of the process, and look closely at no more than they show.
local ROOMS = {
  tasks = "tasks", where = "where", ended = "ended", phases = "phases", checks = "checks",
  why = "why", handles = "handles", conns = "conns", mem = "mem", loop = "loop",
  timers = "timers", config = "config", work = "work",
}

local M = {}

--- The process in one screen.
---@async
---@return table
function M.status(...)
  require("moontide.console.inspect.arguments").none("status", ...)
  return require("moontide.view").new(require("moontide.console.status").collect(),
    require("moontide.console.status.screen").text)
end

return setmetatable(M, {
  __index = function(self, name)
    local room = ROOMS[name]
    if not room then return nil end
    local fn = require("moontide.console.inspect." .. room)[name]
    rawset(self, name, fn)
    return fn
  end,
})
