--- The audit of the console: who asked for what, before it begins, and how it ended.
---
--- Records of component `console`, in the log. A source stands in it with its first 200 bytes and
--- the digest of all of it.

local core = require "moontide.core"
local digest = require "moontide.lazy" "moontide.core.digest"

-- No log level leaves them out.
local audit = core.log.audit

local M = {}

local SHOWN = 200
-- Sees /proc even when the script has taken `io` away.
local open_file = io.open

--- The name of a process; nil: it is gone.
---@param pid integer
---@return string|nil
function M.comm(pid)
  local file = open_file(("/proc/%d/comm"):format(pid))
  if not file then return nil end
  local name = file:read "l"
  file:close()
  return name
end

--- What a session does.
---@param session moontide.console.Session
---@param action string "eval", "drain", ...
---@param text string
---@param id integer|string|nil of the request
function M.action(session, action, text, id)
  text = tostring(text)
  audit("console", action, "session", session.id, "uid", session.uid, "pid", session.pid,
    "comm", session.comm, "request", id, "text", text:sub(1, SHOWN), "bytes", #text,
    "sha256", digest.sha256(text))
end

--- How a request that was recorded has ended.
---@param reply moontide.console.Reply
---@param status moontide.console.Status
---@param ms number
function M.ended(reply, status, ms)
  local session = reply.session
  audit("console", reply.type .. " ended", "session", session.id, "uid", session.uid, "pid",
    session.pid, "comm", session.comm, "request", reply.id, "status", status, "ms", ms)
end

--- Somebody who was turned away.
---@param who { uid: integer, pid: integer, comm: string|nil }
---@param why string
---@param text string|nil what it sent
function M.refused(who, why, text)
  core.log.write(2, "console", "refused: " .. why, "uid", who.uid, "pid", who.pid, "comm",
    who.comm or M.comm(who.pid), "text", text and text:sub(1, SHOWN))
end

return M
