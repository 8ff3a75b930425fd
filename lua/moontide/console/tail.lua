--- The log as it is written, for those who ask: `tail`. A client that reads too slowly misses
--- records, and is told how many.

local core = require "moontide.core"
local json = require "moontide.json"
local control = require "moontide.core.control"
local readers = require "moontide.observe.readers"
local suggest = require "moontide.lazy" "moontide.suggest"
local task = require "moontide.task"

local M = {
  --- While so many bytes wait for a client to read, records for it are left out.
  QUEUED = 256 * 1024,
}

local NAMES = { "trace", "debug", "info", "warn", "error" }
local LEVELS = { trace = 0, debug = 0, info = 1, warn = 2, error = 3 }

---@class moontide.console.Tail : moontide.LogReader
---@field reply moontide.console.Reply
---@field missed integer
local Tail = {}
Tail.__index = Tail

--- Sends a record as it is: to decode it and encode it again would cost more than all the rest.
---@param line string
function Tail:read(line)
  local reply = self.reply
  if control.queued(reply.session.link.id) > M.QUEUED then
    self.missed = self.missed + 1
    return
  end
  if self.missed > 0 then
    reply:event { event = "missed", records = self.missed }
    self.missed = 0
  end
  reply.session:write(('{"id":%s,"type":"event","event":"log","record":%s}\n'):format(
    json.encode(reply.id), line))
end

--- Records that the log had no room for.
---@param count integer
function Tail:lost(count)
  self.missed = self.missed + count
end

--- What a `tail` does: it sends records until it is cancelled.
---@async
---@param session moontide.console.Session
---@param request { level: string|nil }
---@param reply moontide.console.Reply
function M.start(session, request, reply)
  local level = request.level or "info"
  if not LEVELS[level] then error(suggest.unknown("level", tostring(level), NAMES), 0) end
  if session.render then error("tail speaks JSON: it is not for a plain console", 0) end
  local tail = setmetatable({ reply = reply, level = LEVELS[level], missed = 0 }, Tail)
  local _ <close> = setmetatable({}, { __close = function() readers.remove(tail) end })
  readers.add(tail)
  reply.lasts = true
  core.log.write(0, "console", "tail", "session", session.id, "level", level)
  task.waiter("records of the log"):wait()
end

return M
