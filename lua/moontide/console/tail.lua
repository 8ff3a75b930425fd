--- The log as it is written, for those who ask: `tail`.
---
--- One tap in the core for all of them, at the least of their levels, so a tail may also see what
--- the process itself does not write. A client that reads too slowly misses records, and is told
--- how many.

local core = require "moontide.core"
local json = require "moontide.json"
local native = require "moontide.core.tail"
local control = require "moontide.core.control"
local suggest = require "moontide.lazy" "moontide.suggest"
local task = require "moontide.task"

local M = {
  --- While so many bytes wait for a client to read, records for it are left out.
  QUEUED = 256 * 1024,
}

local NAMES = { "debug", "info", "warn", "error" }
local LEVELS = { trace = 0, debug = 0, info = 1, warn = 2, error = 3 }

---@class moontide.console.Tail
---@field reply moontide.console.Reply
---@field level integer
---@field missed integer
local tails = {} ---@type table<moontide.console.Tail, true>

-- The record as it is: to read it and write it again would cost more than all the rest.
local function tell(tail, line)
  local reply = tail.reply
  if control.queued(reply.session.link.id) > M.QUEUED then
    tail.missed = tail.missed + 1
    return
  end
  if tail.missed > 0 then
    reply:event { event = "missed", records = tail.missed }
    tail.missed = 0
  end
  reply.session:write(('{"id":%s,"type":"event","event":"log","record":%s}\n'):format(
    json.encode(reply.id), line))
end

-- Whose client is gone leaves the table meanwhile.
local function on_records(records, lost)
  local list = {}
  for tail in pairs(tails) do list[#list + 1] = tail end
  for _, tail in ipairs(list) do
    tail.missed = tail.missed + lost
    for i = 1, #records, 2 do
      if tails[tail] and records[i] >= tail.level then tell(tail, records[i + 1]) end
    end
  end
end

local function listen()
  local least
  for tail in pairs(tails) do least = math.min(least or tail.level, tail.level) end
  if least then native.start(least, on_records) else native.stop() end
end

--- Tells what has been written up to now, before the process ends.
function M.flush()
  on_records(native.take())
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
  local tail = { reply = reply, level = LEVELS[level], missed = 0 }
  local function leave()
    tails[tail] = nil
    listen()
  end
  local _ <close> = setmetatable({}, { __close = leave })
  tails[tail] = true
  listen()
  core.log.write(0, "console", "tail", "session", session.id, "level", level)
  task.waiter("records of the log"):wait()
end

return M
