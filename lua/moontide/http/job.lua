--- A job as its handler sees it.

local core = require "moontide.core"
local store_room = require "moontide.http.store"

local M = {}

-- Progress is written to the store at most this often, in seconds; this process sees all of it.
local PROGRESS_EVERY = 1

---@class moontide.Job
---@field id string 32 hex digits
---@field key string|nil the Idempotency-Key
---@field request moontide.JobRequest a copy of what the request had
---@field resumed boolean an earlier process had begun it (`resume`)
local Job = {}
Job.__index = Job

---@class moontide.JobRequest
---@field method string
---@field path string
---@field target string
---@field params table<string, string>
---@field query table<string, string>
---@field headers table<string, string> names in lower case
---@field body string
---@field remote string

--- Says how far the job is, for who polls.
---@param n number|nil any measure
---@param text string|nil
function Job:progress(n, text)
  if n ~= nil and type(n) ~= "number" then error("job:progress: n is a number", 2) end
  if text ~= nil and type(text) ~= "string" then error("job:progress: text is a string", 2) end
  local entry = self.entry
  entry.progress = { n = n, text = text }
  local now = core.clock.now()
  if now - entry.told_at < PROGRESS_EVERY then return end
  entry.told_at = now
  store_room.spawn("job progress", store_room.call, self.store, "update", self.id,
    { progress = entry.progress })
end

---@param fields table id, key, request, resumed; the entry in `live`, the store
---@return moontide.Job
function M.new(fields)
  return setmetatable(fields, Job)
end

return M
