--- `tide.http.accepted`: long work behind a route. The request is answered with 202 and the place
--- where the job can be looked at; what the handler returns is the result there.
---
---     GET    PATH/ID           { id, state, progress, result | error, reason }
---     GET    PATH/ID/result    the result as an answer: its status, headers and body
---     DELETE PATH/ID           ends the job
---
--- The two routes have the middleware that stands before `accepted` in the declaration.

local idempotency = require "moontide.http.idempotency"
local jobs_room = require "moontide.http.jobs"
local json = require "moontide.json"
local options = require "moontide.options"
local result = require "moontide.http.result"
local store_room = require "moontide.http.store"
local task = require "moontide.task"
local fail = require("moontide.site").fail

local problem = idempotency.problem

---@class moontide.Accepted
local Accepted = {}
Accepted.__index = Accepted

local M = {}

local WHAT = "tide.http.accepted"
local SPECS = {
  ttl = "duration", key = "string", store = "string|table", retry_after = "duration",
  limit = "count", parallel = "count", timeout = "duration", resume = "boolean",
  scope = "function",
}
local DEFAULTS = { ttl = 3600, key = "required", retry_after = 1, limit = 100, parallel = 10 }
local PARAM = "job_id"
local SAFE = { GET = true, HEAD = true, OPTIONS = true }

---@class moontide.AcceptedOptions
---@field ttl number|string|nil how long an outcome is kept; default 1h
---@field key "required"|"optional"|nil the Idempotency-Key field; default required
---@field store string|table|nil "memory", "sqlite:FILE", or an object; default memory
---@field retry_after number|string|nil what clients are told to wait; default 1s
---@field limit integer|nil jobs that wait or run; default 100, then 503
---@field parallel integer|nil jobs that run at once; default 10
---@field timeout number|string|nil of a job; default none
---@field resume boolean|nil run what an earlier process has not finished again; default false
---@field scope (fun(req: moontide.Request): string)|nil keys of different scopes do not meet

--- Checks the `key` option.
---@return boolean required
function M.is_required(key, what)
  if key ~= "required" and key ~= "optional" then
    fail(("%s: key is \"required\" or \"optional\", not %q"):format(what, key))
  end
  return key == "required"
end

---@param opts moontide.AcceptedOptions|nil
---@return moontide.Accepted
function M.new(opts)
  local checked = options.check(WHAT, opts, SPECS, DEFAULTS)
  M.is_required(checked.key, WHAT)
  checked.store = store_room.resolve(checked.store, WHAT)
  if checked.resume and checked.store.is_memory then
    fail(WHAT .. ": resume needs a store that outlives the process, such as \"sqlite:jobs.db\"")
  end
  return setmetatable({ opts = checked }, Accepted)
end

-- ---- the request ------------------------------------------------------------------------------

local function copy(from, lower)
  local out = {}
  for name, value in pairs(from) do out[lower and name:lower() or name] = value end
  return out
end

-- Repeated fields come one by one when they are listed, and joined when they are asked for.
local function copy_headers(req)
  local out = {}
  for name in pairs(req.headers) do out[name:lower()] = req.headers[name] end
  return out
end

local function copy_request(req, body)
  return {
    method = req.method, path = req.path, target = req.target, params = copy(req.params),
    query = copy(req.query), headers = copy_headers(req), body = body, remote = req.remote,
  }
end

-- In a task of its own: a client that leaves now gets its job all the same.
local function submit(jobs, new)
  local t = task.start({ name = "job submit", scope = store_room.scope, detached_errors = true },
    jobs.submit, jobs, new)
  return t:await()
end

local function unavailable(self, why)
  local seconds = self.opts.retry_after
  if why.busy then
    return problem(503, "Too many jobs", "as many jobs as are allowed wait or run", seconds)
  elseif why.draining then
    return problem(503, "Shutting down", "no new job is begun; known ones are found", seconds)
  end
  return idempotency.unavailable(why, seconds)
end

local function finished(job)
  return job.state == "READY" or job.state == "FAILED"
end

local function headers_of(self, job, more)
  local headers = { ["Cache-Control"] = "no-store" }
  for name, value in pairs(more or {}) do headers[name] = value end
  if not finished(job) then
    headers["Retry-After"] = tostring(math.ceil(self.opts.retry_after))
  end
  return headers
end

local function accept(self, jobs, req)
  local opts = self.opts
  local key, wrong = idempotency.key_of(req, opts.key == "required")
  if wrong then return idempotency.bad_key(wrong) end
  local body = idempotency.body(req)
  local new = {
    key = key, scope = idempotency.scope_of(jobs.scope, opts.scope, req),
    fingerprint = idempotency.fingerprint(req, body), path = req.path,
    request = copy_request(req, body),
  }
  local job, why, is_new = submit(jobs, new)
  if not job then return unavailable(self, why) end
  if job.fingerprint ~= new.fingerprint then return idempotency.reused() end
  local href = ("%s/%s"):format(req.path:gsub("/+$", ""), job.id)
  return 202, { id = job.id, state = job.state, href = href }, headers_of(self, job, {
    Location = href, ["Idempotency-Replayed"] = not is_new and "true" or nil,
  })
end

-- ---- looking at a job -------------------------------------------------------------------------

-- A body as a part of JSON; nil when it is neither JSON nor text.
local function embedded(kept)
  local body = kept.body
  if not body then return nil end
  if result.is_json(kept) then
    local value, message = json.decode(body)
    if not message then return value end
  end
  return utf8.len(body) and body or nil
end

local function document(job, href)
  local doc = { id = job.id, state = job.state, progress = job.progress }
  if job.state == "READY" then
    local kept = job.result
    doc.result = {
      status = kept.status, headers = kept.headers, body = embedded(kept), href = href .. "/result",
    }
  elseif job.state == "FAILED" then
    doc.error, doc.reason = job.failure.error, job.failure.reason
  end
  return doc
end

-- The job that a request asks for, or the answer that there is none.
local function find(self, jobs, req, suffix)
  local path = req.path:sub(1, #req.path - #suffix):match "^(.*)/[^/]*$"
  if not jobs.with_slash then path = path ~= "" and path or "/" else path = path .. "/" end
  local job, why = jobs:get(req.params[PARAM], path)
  if job then return job, req.path:sub(1, #req.path - #suffix) end
  if why.gone then
    return nil, problem(404, "No such job", "there is none with this id, or it has expired")
  end
  return nil, unavailable(self, why)
end

local function poll(self, jobs, req)
  local job, a, b, c = find(self, jobs, req, "")
  if not job then return a, b, c end
  return 200, document(job, a), headers_of(self, job)
end

local function fetch(self, jobs, req)
  local job, a, b, c = find(self, jobs, req, "/result")
  if not job then return a, b, c end
  if job.state == "READY" then
    return result.answer(job.result, { ["Cache-Control"] = "no-store" })
  elseif job.state == "FAILED" then
    return problem(job.failure.status or 500, "The job failed", job.failure.error)
  end
  return problem(409, "The job is not ready", "it is " .. job.state, self.opts.retry_after)
end

local function cancel(self, jobs, req)
  local job, a, b, c = find(self, jobs, req, "")
  if not job then return a, b, c end
  if finished(job) then return 200, document(job, a), headers_of(self, job) end
  if not job.live then
    return problem(409, "The job is elsewhere", "it runs in another process", self.opts.retry_after)
  end
  jobs:stop(job.live, "cancelled")
  job = jobs:view(job.live)
  return finished(job) and 200 or 202, document(job, a), headers_of(self, job)
end

-- ---- the declaration --------------------------------------------------------------------------

local function add_route(route, before, method, pattern, handler)
  local steps = table.move(before, 1, #before, 1, {})
  steps[#steps + 1] = handler
  local ok, message = pcall(route.server.route, route.server, method, pattern,
    table.unpack(steps))
  if not ok then
    fail(("%s: the jobs of %s %s are at %s %s: %s"):format(WHAT, route.method, route.pattern,
      method, pattern, message))
  end
end

local function open(self, jobs)
  return function()
    jobs.store:open()
    require("moontide.background").when_ready(function()
      store_room.spawn("jobs left over", jobs.recover_all, jobs)
    end)
    return self
  end
end

local function jobs_of(self, route, handler)
  local opts = self.opts
  return jobs_room.new {
    name = ("%s %s %s"):format(route.server.name, route.method, route.pattern),
    scope = idempotency.scope(route), store = opts.store, handler = handler, limit = opts.limit,
    parallel = opts.parallel, ttl = opts.ttl, timeout = opts.timeout, resume = opts.resume,
    site = route.site, with_slash = #route.pattern > 1 and route.pattern:sub(-1) == "/",
  }
end

--- Called by the declaration of the route.
---@param route { server: moontide.Server, method: string, pattern: string, site: string }
---@param handler fun(job: moontide.Job): ...
---@param before function[] middleware in front of it
---@return fun(req: moontide.Request): ...
function Accepted:attach(route, handler, before)
  if SAFE[route.method] then
    fail(("%s: a %s asks for nothing to be done; POST does"):format(WHAT, route.method))
  end
  local jobs = jobs_of(self, route, handler)
  local at = ("%s/:%s"):format(route.pattern:gsub("/+$", ""), PARAM)
  add_route(route, before, "GET", at, function(req) return poll(self, jobs, req) end)
  add_route(route, before, "DELETE", at, function(req) return cancel(self, jobs, req) end)
  add_route(route, before, "GET", at .. "/result", function(req) return fetch(self, jobs, req) end)
  route.server:own { open = open(self, jobs) }
  jobs:drain_with_requests()
  store_room.close_at_the_end(jobs.store)
  return function(req) return accept(self, jobs, req) end
end

return M
