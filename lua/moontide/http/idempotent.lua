--- `tide.http.idempotent`: a route that runs once for each Idempotency-Key. The first answer is
--- kept, and given again to whoever comes with the same key and the same request.
---
--- The handler goes on when its client leaves, and the shutdown waits for it: the client will come
--- again to hear what became of its request.

local core = require "moontide.core"
local digest = require "moontide.core.digest"
local idempotency = require "moontide.http.idempotency"
local options = require "moontide.options"
local result = require "moontide.http.result"
local store_room = require "moontide.http.store"
local task = require "moontide.task"

local call, problem = store_room.call, idempotency.problem

---@class moontide.Idempotent
local Idempotent = {}
Idempotent.__index = Idempotent

local M = {}

local WHAT = "tide.http.idempotent"
local SPECS = {
  ttl = "duration", key = "string", store = "string|table", retry_after = "duration",
  scope = "function",
}
local DEFAULTS = { ttl = 24 * 3600, key = "required", retry_after = 1 }
-- Between two tries to keep an answer, in seconds: the first, and the most.
local RETRY_FIRST, RETRY_MOST = 0.1, 5

---@class moontide.IdempotentOptions
---@field ttl number|string|nil how long an answer is kept; default 24h
---@field key "required"|"optional"|nil the Idempotency-Key field; default required
---@field store string|table|nil "memory", "sqlite:FILE", or an object; default memory
---@field retry_after number|string|nil what clients are told to wait; default 1s
---@field scope (fun(req: moontide.Request): string)|nil keys of different scopes do not meet

---@param opts moontide.IdempotentOptions|nil
---@return moontide.Idempotent
function M.new(opts)
  local checked = options.check(WHAT, opts, SPECS, DEFAULTS)
  require("moontide.http.accepted").is_required(checked.key, WHAT)
  checked.store = store_room.resolve(checked.store, WHAT)
  return setmetatable({ opts = checked }, Idempotent)
end

-- ---- keeping the answer -----------------------------------------------------------------------

-- What the next try may answer otherwise.
local function is_passing(status)
  return status >= 500 or status == 429
end

local function complain(room, id, err)
  store_room.complain("an answer is not kept yet", room.name, id, err)
end

-- Until it is in the store, others with the key are told to wait.
local function keep(room, id, kept)
  local wait = RETRY_FIRST
  while true do
    local _, err = call(room.store, "finish", id, { state = "READY", result = kept }, room.ttl)
    if not err then break end
    complain(room, id, err)
    if err.final and kept then
      kept = nil
    else
      task.sleep(wait)
      wait = math.min(wait * 2, RETRY_MOST)
    end
  end
  room.pending:remove(id)
end

local function keep_later(room, id, kept)
  store_room.spawn("answer to keep", keep, room, id, kept)
end

-- A key whose record stays here is found without its handler, and taken over by the next request.
local function let_go(room, id)
  local _, err = call(room.store, "remove", id)
  if err then complain(room, id, err) end
  room.pending:remove(id)
end

-- The same, waited for: the next request with the key is to find it free. It is done also when who
-- waits is cancelled.
local function let_go_now(room, id)
  store_room.spawn("key to let go", let_go, room, id):await()
end

local function answered(room, work, req, ...)
  work.done = true
  if work.streamed then -- there is nothing to give again
    keep_later(room, work.id, nil)
    return ...
  end
  -- What res:status and res:header have set is part of what is kept: that goes out, too.
  local status, headers = require("moontide.http.response").take_prepared(req)
  local ok, kept = pcall(result.of, status, headers, ...)
  if not ok then -- the same is found, and said, by who sends it
    let_go_now(room, work.id)
    return ...
  elseif is_passing(kept.status) then
    let_go_now(room, work.id)
  else
    keep_later(room, work.id, kept)
  end
  return result.answer(kept)
end

local function run(room, work, req)
  work.begun = true
  return answered(room, work, req, room.handler(req, req))
end

-- The task of a request has ended without an answer: an error, a deadline, the shutdown.
local function failed(room, work, t)
  if work.done or not work.id then return end
  if not work.begun then return room.pending:remove(work.id) end
  local exchange = require "moontide.http.exchange"
  if exchange.is_error(t.error) and not is_passing(t.error.status) then
    local err = t.error
    return keep_later(room, work.id, result.of(nil, nil, err.status, err.message, err.headers))
  end
  store_room.spawn("key to let go", let_go, room, work.id)
end

-- ---- a request --------------------------------------------------------------------------------

local function replay(kept)
  if not kept then
    return problem(409, "The answer was not kept",
      "this request was answered, and is not run again; its answer was a stream or too large")
  end
  return result.answer(kept, { ["Idempotency-Replayed"] = "true" })
end

-- In progress, says the record: by a handler that lives?
local function is_worked_on(room, record)
  if room.pending.items[record.id] then return true end
  return record.owner ~= room.store.owner and room.store:is_alive(record)
end

local function take_over(room, work, record, req)
  work.id = record.id
  room.pending:add(work.id, work)
  local adopted, err = call(room.store, "adopt", record)
  if adopted then return run(room, work, req) end
  room.pending:remove(work.id)
  work.id = nil
  if err then return idempotency.unavailable(err, room.retry_after) end
  return idempotency.outstanding(room.retry_after)
end

local function known(room, work, record, fingerprint, req)
  if record.fingerprint ~= fingerprint then return idempotency.reused() end
  if record.state == "READY" then return replay(record.result) end
  if is_worked_on(room, record) then return idempotency.outstanding(room.retry_after) end
  return take_over(room, work, record, req)
end

local function first_or_known(room, work, req, key, body)
  local fingerprint = idempotency.fingerprint(req, body)
  work.id = digest.random_id()
  room.pending:add(work.id, work)
  local added, err = call(room.store, "add", {
    id = work.id, scope = idempotency.scope_of(room.scope, room.refine, req), key = key,
    fingerprint = fingerprint, path = req.path, state = "RUNNING",
    created = math.floor(core.clock.wall()),
  })
  if added == true then return run(room, work, req) end
  room.pending:remove(work.id)
  work.id = nil
  if added then return known(room, work, added, fingerprint, req) end
  store_room.complain("a key could not be recorded, and its request was not run", room.name, "-",
    err)
  return idempotency.unavailable(err, room.retry_after)
end

-- Notes that the answer is not what the handler returns; a client that left takes with it whether
-- something was sent.
local function watch_streams(req, work)
  for _, name in ipairs { "write", "stream", "sse", "upgrade" } do
    local method = req[name]
    req[name] = function(...)
      work.streamed = true
      return method(...)
    end
  end
end

-- The body is read already; handlers find it where they look for it.
local function give_body(req, body)
  req.body = function() return body end
  req.chunks = function()
    local left = body ~= "" and body or nil
    return function()
      local piece = left
      left = nil
      return piece
    end
  end
end

local function serve(room, req)
  local key, wrong = idempotency.key_of(req, room.required)
  if wrong then return idempotency.bad_key(wrong) end
  if not key then return room.handler(req, req) end
  local body = idempotency.body(req)
  local work = {}
  give_body(req, body)
  watch_streams(req, work)
  work.task = task.start({
    name = room.name, kind = "handler", scope = task.root, site = room.site,
    deadline = task.deadline(), limit = "timeouts.handler", detached_errors = true,
    on_end = function(ended) failed(room, work, ended) end,
  }, first_or_known, room, work, req, key, body)
  return work.task:await()
end

-- The shutdown has no more time: the keys of what runs are free for the next process.
local function interrupt(room)
  for _, work in pairs(room.pending.items) do
    if work.task then work.task:cancel("drain timeout") end
  end
end

--- Called by the declaration of the route.
---@param route { server: moontide.Server, method: string, pattern: string, site: string }
---@param handler fun(req: moontide.Request, res: moontide.Response): ...
---@return fun(req: moontide.Request): ...
function Idempotent:attach(route, handler)
  local opts = self.opts
  local name = ("%s %s %s"):format(route.server.name, route.method, route.pattern)
  local room = {
    name = name, scope = idempotency.scope(route), refine = opts.scope, store = opts.store,
    handler = handler, ttl = opts.ttl, retry_after = opts.retry_after, site = route.site,
    required = opts.key == "required",
    pending = require("moontide.http.pending").new("idempotent:" .. name),
  }
  route.server:own { open = function() room.store:open() end }
  room.pending:drain_with_requests(function() end, function() interrupt(room) end)
  store_room.close_at_the_end(room.store)
  return function(req) return serve(room, req) end
end

return M
