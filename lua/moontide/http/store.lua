--- Where jobs and answers are kept. A store is an object with these methods. All but `open` and
--- `now` may await; a failure is `nil, moontide.StoreError`, not an error that is raised:
---
---     store:open()                       once or more before the first use; raises what is wrong
---     store:add(record)                  true: it is in now | the record with its scope and key
---     store:get(id)                      the record | false
---     store:find(scope, key)             the record | false
---     store:update(id, fields)           true | false: no such record; `state`, `progress`
---     store:finish(id, fields, ttl)      the same; `ttl` seconds later the record is gone
---     store:release(id, fields)          the same; it belongs to no process any more
---     store:remove(id)                   true
---     store:unfinished(scope)            a list of the records in progress of a route
---     store:adopt(record)                true: it belongs to this process now | false
---     store:is_alive(record)             whether the process that it belongs to lives
---     store:close()
---
--- `add` is atomic: of any number that ask at once with the same scope and key, one gets true, in
--- whatever process it is. A record in progress never expires. `adopt` is atomic, too, and fails
--- when the record is no longer of the owner that it had when it was read.

local core = require "moontide.core"
local errors = require "moontide.task.errors"

local M = {}

--- The scope of what must reach a store whoever is cancelled.
M.scope = require("moontide.task").new_scope("stores")

---@class moontide.StoreRecord
---@field id string
---@field scope string
---@field key string|nil nil: nothing else can have its scope and key
---@field fingerprint string
---@field path string
---@field state "QUEUED"|"RUNNING"|"READY"|"FAILED"
---@field request table|nil what a job was asked with
---@field result moontide.Result|nil
---@field failure { reason: string, error: string, status: integer|nil }|nil
---@field progress { n: number|nil, text: string|nil }|nil
---@field created integer seconds of the wall clock

---@class moontide.StoreError
---@field message string
---@field full boolean|nil there is no room
---@field retry_after number|nil seconds
---@field final boolean|nil trying again is of no use

local METHODS = {
  "open", "add", "get", "find", "update", "finish", "release", "remove", "unfinished", "adopt",
  "is_alive", "close",
}

--- A store in memory; it is gone with the process.
---@param opts { count: integer|nil, bytes: integer|nil }|nil bounds; default 10,000 and 64 MiB
---@return table store
function M.memory(opts)
  return require("moontide.http.store_memory").new(opts)
end

--- A store in a SQLite file. A name that is not absolute is in the state directory.
---@param path string
---@param opts { busy: number|string|nil, bytes: integer|nil }|nil
---@return table store
function M.sqlite(path, opts)
  return require("moontide.http.store_sqlite").new(path, opts)
end

local files = {}

--- The store that an option names: nil and "memory", "sqlite:jobs.db", or an object.
---@param value any
---@param what string for messages
---@return table store
function M.resolve(value, what)
  local fail = require("moontide.site").fail
  if value == nil or value == "memory" then return M.memory() end
  if type(value) == "string" then
    local path = value:match "^sqlite:(.+)$"
    if path then
      -- Routes that name the same file share a store.
      files[path] = files[path] or M.sqlite(path)
      return files[path]
    end
    fail(("%s: store %q is neither \"memory\" nor \"sqlite:FILE\""):format(what, value))
  end
  for _, method in ipairs(METHODS) do
    if type(value[method]) ~= "function" then
      fail(("%s: the store has no method %q; see moontide/http/README.md"):format(what, method))
    end
  end
  return value
end

--- Calls a method of a store. One that raises has failed like one that says so; only the end of
--- the asking task is not the store's.
---@async
---@return any value
---@return moontide.StoreError|nil
function M.call(store, method, ...)
  local ok, value, err = pcall(store[method], store, ...)
  if ok then return value, err end
  if errors.is_cancelled(value) then error(value, 0) end
  return nil, { message = require("moontide.pipeline.record").text(value) }
end

-- A store that fails does so for each request: of one complaint a record goes out at most this
-- often (seconds), and says how many it stands for.
local EVERY = 5
local said = {}

--- Writes to the log that a store has failed.
---@param message string
---@param route string
---@param id string
---@param err moontide.StoreError
function M.complain(message, route, id, err)
  local key, at = message .. "\0" .. route, core.clock.now()
  local last = said[key]
  if last and at - last.at < EVERY then
    last.silent = last.silent + 1
    return
  end
  said[key] = { at = at, silent = 0 }
  core.log.write(3, "http", message, "route", route, "id", id, "error", err.message,
    "unsaid", last and last.silent > 0 and last.silent or nil)
end

local function heard(t)
  if t.outcome == "ok" or t.outcome == "cancelled" then return end
  core.log.write(3, "http", "what concerns a store failed", "task", t.name,
    "error", require("moontide.pipeline.record").text(t.error), "traceback", t.stack)
end

--- Runs fn(...) beside everything, whoever is cancelled; nobody has to wait for it.
---@param name string
---@param fn fun(...)
---@return moontide.Task
function M.spawn(name, fn, ...)
  return require("moontide.task").start({
    name = name, scope = M.scope, detached_errors = true, on_end = heard,
  }, fn, ...)
end

local closing, names = setmetatable({}, { __mode = "k" }), {}

--- Lets a store be closed near the end of the shutdown, after all who may use it.
function M.close_at_the_end(store)
  if closing[store] or store.is_memory then return end
  closing[store] = true
  local name = "store:" .. (store.name or "of the script")
  names[name] = (names[name] or 0) + 1
  if names[name] > 1 then name = ("%s (%d)"):format(name, names[name]) end
  require("moontide.shutdown"):builtin_task("before-actor-system-terminate", name, function()
    store:close()
  end)
end

return M
