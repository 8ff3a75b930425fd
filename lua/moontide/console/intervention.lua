--- What was done to the process through the console: by whom and why. It goes to the audit and to
--- the log at once, and into the exit report.

local core = require "moontide.core"

local M = {}

-- As many are remembered; and that long may a reason be.
local REMEMBERED, LONGEST = 100, 500

---@class moontide.Intervention
---@field time number Unix time
---@field action string "drain", "retry", "skip", "extend"
---@field target string|nil "service-stop/flush"
---@field reason string
---@field uid integer
---@field pid integer
---@field comm string|nil

---@type moontide.Intervention[] the last of them, oldest first
M.list = {}

--- A reason that somebody gave. Raises, showing the right call, when it says nothing.
---@param reason any
---@param call string 'skip("flush", "why")'
---@return string
function M.reason(reason, call)
  if type(reason) ~= "string" or not reason:find "%S" then
    error(("a reason is wanted, for the audit and the report: %s"):format(call), 0)
  elseif #reason > LONGEST then
    error(("the reason has %d bytes, %d are enough: %s"):format(#reason, LONGEST, call), 0)
  end
  return (reason:gsub("%c+", " "))
end

--- How it is said in the log and in what a skipped task is told.
---@param session moontide.console.Session
---@param reason string
---@return string
function M.words(session, reason)
  return ("console, %s of user %d: %s"):format(session.comm or "process " .. session.pid,
    session.uid, reason)
end

--- Notes what is about to be done.
---@param session moontide.console.Session
---@param action string
---@param target string|nil
---@param reason string
function M.note(session, action, target, reason)
  session:audit(action, (target and target .. ": " or "") .. reason)
  core.log.write(2, "lifecycle", ("%s%s at the console: %s"):format(action,
    target and " " .. target or "", reason), "session", session.id, "uid", session.uid, "pid",
    session.pid)
  local list = M.list
  list[#list + 1] = {
    time = math.floor(core.clock.wall() * 1000) / 1000, action = action, target = target,
    reason = reason, uid = session.uid, pid = session.pid, comm = session.comm,
  }
  if #list > REMEMBERED then table.remove(list, 1) end
end

return M
