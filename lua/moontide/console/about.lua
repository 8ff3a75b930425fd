--- What the console says about itself: who else looks in.

local view = require "moontide.view"

local M = {}

local function running(session)
  local names = {}
  for _, reply in pairs(session.running) do names[#names + 1] = reply.type end
  table.sort(names)
  return table.concat(names, " ")
end

local function render(list)
  local rows = {}
  for i, item in ipairs(list) do
    rows[i] = { item.id, item.uid, item.pid, item.comm, item.policy, item.running,
      item.own and "this one" or "" }
  end
  return view.columns({ ">id", ">user", ">pid", "program", "may", "runs", "" }, rows)
end

--- `sessions()`: the open ones, oldest first.
---@param session moontide.console.Session
---@return table
function M.sessions(session)
  local list = {}
  for other in require("moontide.console.session").each() do
    list[#list + 1] = {
      id = other.id, uid = other.uid, pid = other.pid, comm = other.comm, policy = other.policy,
      running = running(other), own = other == session,
    }
  end
  return view.new(list, render)
end

return M
