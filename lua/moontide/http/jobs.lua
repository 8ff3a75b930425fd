--- The jobs of one route: admitted, queued, run, kept; what becomes of them in a shutdown and after
--- one. Answers are accepted.lua's.
---
---     QUEUED -> RUNNING -> READY | FAILED
---
--- A job is in `live` from before its record is made until its outcome is kept: so this process
--- knows without the store what it works on, and a record in progress that is not in `live` has
--- lost its process. A job begins only when its record says RUNNING: one that is QUEUED has never
--- begun, and whoever finds it may run it.

local core = require "moontide.core"
local digest = require "moontide.core.digest"
local left_over = require "moontide.http.jobs_left_over"
local new_job = require("moontide.http.job").new
local result = require "moontide.http.result"
local store_room = require "moontide.http.store"
local task = require "moontide.task"

local call = store_room.call
local write_log = core.log.write

---@class moontide.Jobs
local Jobs = {}
Jobs.__index = Jobs

local M = {}

local INTERRUPTED = "interrupted by shutdown"
-- Between two looks at a store that fails, in seconds: the first, and the most.
local RETRY_FIRST, RETRY_MOST = 0.1, 5

---@param opts table name, scope, store, handler, limit, parallel, ttl, timeout, resume, site
---@return moontide.Jobs
function M.new(opts)
  opts.pending = require("moontide.http.pending").new("jobs:" .. opts.name)
  opts.live, opts.recovering = opts.pending.items, {}
  opts.count, opts.running = 0, 0
  opts.queue = {}
  return setmetatable(opts, Jobs)
end

local function complain(self, message, entry, err)
  store_room.complain(message, self.name, entry.id, err)
end

-- ---- admission --------------------------------------------------------------------------------

local function enter(self, record, request, resumed)
  local entry = { id = record.id, record = record, state = "QUEUED", told_at = -math.huge }
  entry.job = new_job {
    id = record.id, key = record.key, request = request, resumed = resumed, entry = entry,
    store = self.store,
  }
  self.pending:add(entry.id, entry)
  self.count = self.count + 1
  return entry
end

local function drop(self, entry)
  self.count = self.count - 1
  self.pending:remove(entry.id)
end

-- The limit holds for new jobs only: a known key still finds its job.
local function known_only(self, new)
  local why = self.closed and "draining" or "busy"
  if not new.key then return nil, { [why] = true } end
  local record, err = call(self.store, "find", new.scope, new.key)
  if record then return self:settle(record, new) end
  return nil, err or { [why] = true }
end

--- Makes a job, or finds the one with its key.
---@async
---@param new table scope, key, fingerprint, path, request
---@return table|nil job as `view` has it
---@return table|nil why a StoreError, { busy = true } or { draining = true }
---@return boolean|nil is_new
function Jobs:submit(new)
  if self.closed or self.count >= self.limit then return known_only(self, new) end
  local record = {
    id = digest.random_id(), scope = new.scope, key = new.key, fingerprint = new.fingerprint,
    path = new.path, state = "QUEUED", created = math.floor(core.clock.wall()),
    request = not self.store.is_memory and new.request or nil, -- who outlives us needs it
  }
  local entry = enter(self, record, new.request, false)
  local added, err = call(self.store, "add", record)
  if added == true then
    self:enqueue(entry)
    return self:view(entry), nil, true
  end
  drop(self, entry)
  if not added then
    complain(self, "a job could not be recorded, and was not begun", entry, err)
    return nil, err
  end
  return self:settle(added, new)
end

-- ---- running ----------------------------------------------------------------------------------

local function outcome_of(entry, t)
  local err = t.error
  if t.outcome == "ok" and entry.result then return "READY" end
  if require("moontide.http.exchange").is_error(err) then
    return "FAILED", { reason = "failed", error = err.message, status = err.status }
  elseif entry.stopped then
    return "FAILED", { reason = entry.stopped, error = entry.stopped }
  elseif t.outcome == "cancelled" then
    return "FAILED", { reason = INTERRUPTED, error = INTERRUPTED }
  elseif t.outcome == "timed_out" then
    return "FAILED", { reason = "timed out", error = "the job timed out" }
  end
  return "FAILED", { reason = "failed", error = "the job failed" }
end

local function log_failure(self, entry, t)
  if entry.stopped or t.outcome == "cancelled" then return end
  write_log(3, "http", "job failed", "route", self.name, "job", entry.id, "outcome", t.outcome,
    "error", require("moontide.pipeline.record").text(t.error), "traceback", t.stack)
end

local function ended(self, entry, t)
  self.running = self.running - 1
  entry.state, entry.failure = outcome_of(entry, t)
  if entry.failure then
    log_failure(self, entry, t)
    entry.result = nil
  end
  self:keep(entry)
  self:start_next()
end

-- Calls fn until the store has done it.
local function insist(self, entry, message, fn)
  local wait = RETRY_FIRST
  while true do
    local _, err = fn()
    if not err then return end
    complain(self, message, entry, err)
    task.sleep(wait)
    wait = math.min(wait * 2, RETRY_MOST)
  end
end

local function body(self, entry)
  insist(self, entry, "a job waits for its record", function()
    return call(self.store, "update", entry.id, { state = "RUNNING" })
  end)
  entry.begun = true
  entry.result = result.of(nil, nil, self.handler(entry.job, entry.job))
end

local function start(self, entry)
  self.running = self.running + 1
  entry.state = "RUNNING"
  entry.task = task.start({
    name = "job " .. self.name, kind = "job", scope = task.root, site = self.site,
    timeout = self.timeout, limit = "the job's timeout", detached_errors = true,
    on_end = function(t) ended(self, entry, t) end,
  }, body, self, entry)
end

--- Begins those of the queue that may run by now.
function Jobs:start_next()
  while self.running < self.parallel and #self.queue > 0 do
    start(self, table.remove(self.queue, 1))
  end
end

--- Lets a job whose record is made wait for its turn.
---@param entry table of `live`
function Jobs:enqueue(entry)
  if entry.stopped then return end -- while its record was made
  if self.interrupted then return self:stop(entry, INTERRUPTED) end
  self.queue[#self.queue + 1] = entry
  self:start_next()
end

local function leave_queue(self, entry)
  for i, other in ipairs(self.queue) do
    if other == entry then return table.remove(self.queue, i) end
  end
end

--- Ends a job before its time.
---@param entry table of `live`
---@param why string
function Jobs:stop(entry, why)
  if entry.stopped or entry.state ~= "QUEUED" and entry.state ~= "RUNNING" then return end
  entry.stopped = why
  if entry.task then
    entry.task:cancel(why)
  else
    leave_queue(self, entry)
    entry.state, entry.failure = "FAILED", { reason = why, error = why }
    self:keep(entry)
  end
end

-- ---- keeping ----------------------------------------------------------------------------------

local function fields_of(entry)
  return {
    state = entry.state, result = entry.result, failure = entry.failure, progress = entry.progress,
  }
end

-- When this process ends, the next one may run what has not begun, or may begin again.
local function is_left_over(self, entry)
  return entry.failure and entry.failure.reason == INTERRUPTED and not self.store.is_memory
    and (self.resume or not entry.begun)
end

local function write_outcome(self, entry)
  if is_left_over(self, entry) then
    local state = entry.begun and "RUNNING" or "QUEUED"
    return call(self.store, "release", entry.id, { state = state })
  end
  local kept, err = call(self.store, "finish", entry.id, fields_of(entry), self.ttl)
  if err and err.final and entry.result then
    complain(self, "the result of a job cannot be kept", entry, err)
    entry.state, entry.result = "FAILED", nil
    entry.failure = { reason = "too large", error = "the result does not fit into the store" }
    return call(self.store, "finish", entry.id, fields_of(entry), self.ttl)
  end
  return kept, err
end

local function keep(self, entry)
  insist(self, entry, "the outcome of a job is not kept yet", function()
    return write_outcome(self, entry)
  end)
  self.pending:remove(entry.id)
end

--- Writes the outcome, for as long as it takes; until then this process answers from memory.
function Jobs:keep(entry)
  self.count = self.count - 1
  store_room.spawn("job outcome", keep, self, entry)
end

-- ---- records of other processes ---------------------------------------------------------------

--- Takes a job that an earlier process has left.
---@param record moontide.StoreRecord adopted
---@param request moontide.JobRequest
---@return table job
function Jobs:run_again(record, request)
  local begun = record.state == "RUNNING"
  local entry = enter(self, record, request, begun)
  write_log(1, "http", begun and "job of an earlier process begins again"
    or "job of an earlier process begins", "route", self.name, "job", record.id)
  self:enqueue(entry)
  return self:view(entry)
end

--- Records that a job is not going to be finished.
---@async
---@param record moontide.StoreRecord adopted
---@return table|nil job
---@return moontide.StoreError|nil
function Jobs:give_up(record)
  record.state = "FAILED"
  record.failure = { reason = "interrupted", error = "interrupted: its process ended" }
  local _, err = call(self.store, "finish", record.id, fields_of(record), self.ttl)
  if err then return nil, err end
  return self:view(record)
end

Jobs.settle, Jobs.recover_all = left_over.settle, left_over.recover_all

-- ---- looking ----------------------------------------------------------------------------------

--- A job, live or a record, as answers need it.
---@return table
function Jobs:view(it)
  local record = it.record or it
  return {
    id = it.id, state = it.state, path = record.path, fingerprint = record.fingerprint,
    progress = it.progress, result = it.result, failure = it.failure, live = self.live[it.id],
  }
end

-- Whether a record is of this route, with whatever the script's scope adds.
local function is_ours(self, record)
  local rest = record.scope:sub(#self.scope + 1)
  return record.scope:sub(1, #self.scope) == self.scope and (rest == "" or rest:byte() == 31)
end

--- The job with this id, if it was asked for at this path.
---@async
---@param id string
---@param path string
---@return table|nil job
---@return table|nil why a StoreError; { gone = true }: there is none
function Jobs:get(id, path)
  local entry = self.live[id]
  local record, err = entry and entry.record, nil
  if not record then record, err = call(self.store, "get", id) end
  if not record then return nil, err or { gone = true } end
  if record.path ~= path or not is_ours(self, record) then return nil, { gone = true } end
  if entry then return self:view(entry) end
  return self:settle(record)
end

-- ---- the shutdown -----------------------------------------------------------------------------

--- Ends what runs or waits: the shutdown's time is over.
function Jobs:interrupt()
  self.interrupted = true
  for _, entry in pairs(self.live) do
    if not (entry.failure or entry.result or entry.stopped) then
      write_log(2, "http", "job interrupted", "route", self.name, "job", entry.id, "state",
        entry.state)
    end
    self:stop(entry, INTERRUPTED)
  end
end

--- Lets the shutdown wait for the jobs. From when it waits no new one is taken; those that are not
--- done in its time are ended, and recorded so.
function Jobs:drain_with_requests()
  self.pending:drain_with_requests(function() self.closed = true end, function()
    self:interrupt()
  end)
end

return M
