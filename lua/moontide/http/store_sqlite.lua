--- A store in a SQLite file, shared by the processes that have it open: a draining one and its
--- successor, say. What is said to be in it is on the disk (WAL, synchronous=FULL).
---
--- Statements run in order on another thread (core/modules/sqlite.c), each a transaction of its
--- own: what must be atomic is one statement.

local core = require "moontide.core"
local options = require "moontide.options"
local pack = require "moontide.http.pack"
local task = require "moontide.task"

---@class moontide.SqliteStore
local Store = {}
Store.__index = Store

local M = {}

local VERSION = 1
local SCHEMA = {
  [[CREATE TABLE records (
    id TEXT PRIMARY KEY, scope TEXT NOT NULL, key TEXT, fingerprint TEXT NOT NULL,
    path TEXT NOT NULL, state TEXT NOT NULL, owner INTEGER NOT NULL, created INTEGER NOT NULL,
    expires REAL, request BLOB, outcome BLOB)]],
  "CREATE UNIQUE INDEX records_key ON records (scope, key)",
  "CREATE INDEX records_expires ON records (expires) WHERE expires IS NOT NULL",
  "CREATE INDEX records_open ON records (scope) WHERE expires IS NULL",
  "PRAGMA user_version = " .. VERSION,
}

local COLUMNS = "id, scope, key, fingerprint, path, state, owner, created, request, outcome"
local SQL = {
  -- One that has expired gives way to the new one with its key.
  add = "INSERT INTO records (id, scope, key, fingerprint, path, state, owner, created, request) "
    .. "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, CAST(?9 AS BLOB)) ON CONFLICT (scope, key) DO "
    .. "UPDATE SET id = excluded.id, fingerprint = excluded.fingerprint, path = excluded.path, "
    .. "state = excluded.state, owner = excluded.owner, created = excluded.created, "
    .. "request = excluded.request, expires = NULL, outcome = NULL WHERE records.expires <= ?10",
  get = "SELECT " .. COLUMNS .. " FROM records WHERE id = ?1 AND (expires IS NULL OR expires > ?2)",
  find = "SELECT " .. COLUMNS .. " FROM records WHERE scope = ?1 AND key = ?2 "
    .. "AND (expires IS NULL OR expires > ?3)",
  update = "UPDATE records SET state = ifnull(?2, state), "
    .. "outcome = ifnull(CAST(?3 AS BLOB), outcome) WHERE id = ?1 AND expires IS NULL",
  finish = "UPDATE records SET state = ?2, outcome = CAST(?3 AS BLOB), expires = ?4, "
    .. "request = NULL WHERE id = ?1",
  release = "UPDATE records SET state = ?2, outcome = NULL, owner = 0 WHERE id = ?1",
  remove = "DELETE FROM records WHERE id = ?1",
  unfinished = "SELECT " .. COLUMNS .. " FROM records WHERE expires IS NULL AND (scope = ?1 OR "
    .. "substr(scope, 1, length(?1) + 1) = ?1 || char(31)) ORDER BY created",
  adopt = "UPDATE records SET owner = ?3 WHERE id = ?1 AND owner = ?2 AND expires IS NULL",
  sweep = "DELETE FROM records WHERE id IN "
    .. "(SELECT id FROM records WHERE expires <= ?1 LIMIT 500)",
}

-- Codes of SQLite that have more to say than its text.
local BUSY, READONLY, CORRUPT, FULL, CANTOPEN, TOOBIG, NOTADB = 5, 8, 11, 13, 14, 18, 26
local HINTS = {
  [BUSY] = "another process holds its lock",
  [READONLY] = "the file or its directory cannot be written",
  [CORRUPT] = "the file is damaged; move it away to begin anew",
  [CANTOPEN] = "the file or its directory cannot be written",
  [NOTADB] = "the file is damaged or no SQLite database; move it away to begin anew",
}

local function describe(code, message)
  local hint = HINTS[code]
  return hint and ("%s: %s"):format(message, hint) or message
end

---@param path string
---@param opts { busy: number|string|nil, bytes: integer|nil }|nil
function M.new(path, opts)
  local what = "tide.http.store.sqlite"
  options.name(what, path)
  local checked = options.check(what, opts, { busy = "duration", bytes = "count" },
    { busy = 5, bytes = 1024 * 1024 * 1024 })
  return setmetatable({ name = path, busy = checked.busy, bytes = checked.bytes, swept = 0 }, Store)
end

-- ---- opening ----------------------------------------------------------------------------------

local function resolve(name)
  if name:sub(1, 1) == "/" then return name end
  local state_dir = require "moontide.state_dir"
  local folder = state_dir.path()
  if not folder then
    error(("store %s: there is no state directory; give state_dir or an absolute path"):format(
      name), 0)
  end
  local made, message = state_dir.make(folder)
  if not made then error(("store %s/%s: %s"):format(folder, name, message), 0) end
  return folder .. "/" .. name
end

local function fail(self, message, code)
  error(("store %s: %s"):format(self.path, describe(code, message)), 0)
end

local function now(self, sql)
  local code, rows = self.db:run_now(sql)
  if code then fail(self, rows, code) end
  return rows
end

-- In one transaction, so that of two processes that make the file one finds it made.
local function make_schema(self)
  now(self, "BEGIN IMMEDIATE")
  local version = now(self, "PRAGMA user_version")[1][1]
  if version == 0 then
    if now(self, "SELECT count(*) FROM sqlite_schema")[1][1] > 0 then
      fail(self, "it is a database of another program")
    end
    for _, sql in ipairs(SCHEMA) do now(self, sql) end
  elseif version > VERSION then
    fail(self, ("it was made by a newer moontide (its schema is %d, this one knows %d)"):format(
      version, VERSION))
  end
  now(self, "COMMIT")
end

-- The change of the mode does not wait for other processes, a transaction does: two that make the
-- file at once come through one after the other.
local function set_wal(self)
  for _ = 1, 20 do
    local code, rows = self.db:run_now("PRAGMA journal_mode = WAL")
    if not code then return rows[1][1] end
    if code ~= BUSY then fail(self, rows, code) end
    now(self, "BEGIN IMMEDIATE")
    now(self, "ROLLBACK")
  end
  fail(self, "database is locked", BUSY)
end

local function set_up(self)
  local page = now(self, "PRAGMA page_size")[1][1]
  now(self, ("PRAGMA max_page_count = %d"):format(math.max(8, self.bytes // page)))
  if set_wal(self) ~= "wal" then fail(self, "its file system cannot have a write-ahead log") end
  now(self, "PRAGMA synchronous = FULL")
  make_schema(self)
end

--- Opens the file, making it if need be; raises an error that names it.
function Store:open()
  if self.db then return end
  local found, sqlite = pcall(require, "moontide.core.sqlite")
  if not found then
    error(("store %s: this moontide was built without SQLite (-DTIDE_SQLITE=ON, and Debian's "
      .. "libsqlite3-dev)"):format(self.name), 0)
  end
  self.path = resolve(self.name)
  local db, message, code = sqlite.open(self.path, math.floor(self.busy * 1000))
  if not db then fail(self, message, code) end
  self.db = db
  local ok, err = pcall(set_up, self)
  if not ok then
    self.db = nil
    error(err, 0)
  end
  local claim, why = sqlite.claim(self.path .. "-owners")
  if not claim then fail(self, why) end
  self.claim, self.owner = claim, claim:token()
end

-- ---- statements -------------------------------------------------------------------------------

local function failure(self, code, message)
  return nil, {
    message = ("%s: %s"):format(self.path, describe(code, message)), code = code,
    full = code == FULL or nil, final = code == TOOBIG or nil,
  }
end

-- nil, rows, changes | code, message
local function run(self, name, ...)
  local db = self.db
  if not db then return 21, "the store is closed" end
  local wait = task.waiter("store " .. self.name)
  db:run(function(...) wait:wake(...) end, SQL[name], ...)
  return wait:wait()
end

-- Whether the statement changed a row.
local function change(self, name, ...)
  local code, rows, changes = run(self, name, ...)
  if code then return failure(self, code, rows) end
  return changes > 0
end

local function record_of(row)
  local outcome = row[10] and pack.unpack(row[10]) or {}
  return {
    id = row[1], scope = row[2], key = row[3], fingerprint = row[4], path = row[5], state = row[6],
    owner = row[7], created = row[8], request = row[9] and pack.unpack(row[9]),
    result = outcome.result, failure = outcome.failure, progress = outcome.progress,
  }
end

local function first(self, name, ...)
  local code, rows = run(self, name, ...)
  if code then return failure(self, code, rows) end
  return rows[1] and record_of(rows[1]) or false
end

local function outcome_of(fields)
  if not (fields.result or fields.failure or fields.progress) then return nil end
  return pack.pack {
    result = fields.result, failure = fields.failure, progress = fields.progress,
  }
end

-- At most once a second, behind nobody's back and for nobody to wait for.
local function sweep(self, at)
  if at - self.swept < 1 then return end
  self.swept = at
  self.db:run(function() end, SQL.sweep, at)
end

---@async
---@return true|moontide.StoreRecord|nil
---@return moontide.StoreError|nil
function Store:add(record)
  for _ = 1, 3 do -- what it collides with may expire or be removed before it is read
    local at = core.clock.wall()
    if self.db then sweep(self, at) end
    local added, err = change(self, "add", record.id, record.scope, record.key, record.fingerprint,
      record.path, record.state, self.owner, record.created,
      record.request and pack.pack(record.request), at)
    if added or err then return added, err end
    local known
    known, err = self:find(record.scope, record.key)
    if known or err then return known, err end
  end
  return nil, { message = self.path .. ": the record of a key comes and goes" }
end

function Store:get(id)
  return first(self, "get", id, core.clock.wall())
end

function Store:find(scope, key)
  return first(self, "find", scope, key, core.clock.wall())
end

function Store:update(id, fields)
  return change(self, "update", id, fields.state, outcome_of(fields))
end

function Store:finish(id, fields, ttl)
  return change(self, "finish", id, fields.state, outcome_of(fields), core.clock.wall() + ttl)
end

function Store:release(id, fields)
  return change(self, "release", id, fields.state)
end

function Store:remove(id)
  local _, err = change(self, "remove", id)
  if err then return nil, err end
  return true
end

function Store:unfinished(scope)
  local code, rows = run(self, "unfinished", scope)
  if code then return failure(self, code, rows) end
  local list = {}
  for i, row in ipairs(rows) do list[i] = record_of(row) end
  return list
end

function Store:adopt(record)
  return change(self, "adopt", record.id, record.owner, self.owner)
end

function Store:is_alive(record)
  return self.claim:alive(record.owner)
end

--- Closes it behind the statements under way; again harmless.
---@async
function Store:close()
  local db = self.db
  if not db then return end
  self.db = nil
  local wait = task.waiter("the end of store " .. self.name)
  db:close(function() wait:wake(true) end)
  wait:wait()
end

return M
