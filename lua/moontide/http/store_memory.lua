--- A store in memory, bounded, without a timer: what has expired is found at the head of a queue.
---
--- Records of one lifetime expire in the order they finished, so each lifetime has a queue, and a
--- look at the heads is all there is to do. A full store takes nothing new: to drop a record before
--- its time would break the promise that its key gives.

local core = require "moontide.core"
local options = require "moontide.options"

---@class moontide.MemoryStore
local Store = { is_memory = true }
Store.__index = Store

local M = {}

-- What a record takes beside its texts.
local OVERHEAD = 600

local function text_size(value, depth)
  if type(value) == "string" then return #value end
  if type(value) ~= "table" or depth > 8 then return 16 end
  local size = 56
  for key, inner in pairs(value) do
    size = size + text_size(key, depth + 1) + text_size(inner, depth + 1)
  end
  return size
end

local function size_of(record)
  return OVERHEAD + text_size(record.request, 0) + text_size(record.result, 0)
end

---@param opts { count: integer|nil, bytes: integer|nil }|nil
function M.new(opts)
  local checked = options.check("tide.http.store.memory", opts,
    { count = "count", bytes = "count" }, { count = 10000, bytes = 64 * 1024 * 1024 })
  return setmetatable({
    most = checked.count, most_bytes = checked.bytes, count = 0, bytes = 0,
    by_id = {}, by_key = {}, queues = {},
  }, Store)
end

function Store:open() end

function Store:close() end

local function place(record)
  return record.scope .. "\0\0" .. record.key
end

local function drop(self, record)
  if self.by_id[record.id] ~= record then return end
  self.by_id[record.id] = nil
  if record.key then self.by_key[place(record)] = nil end
  self.count, self.bytes = self.count - 1, self.bytes - record.size
end

-- Takes out what has expired; at most as many as came in.
local function sweep(self, now)
  for ttl, queue in pairs(self.queues) do
    while queue.first <= queue.last and queue[queue.first].expires <= now do
      drop(self, queue[queue.first])
      queue[queue.first] = nil
      queue.first = queue.first + 1
    end
    if queue.first > queue.last then self.queues[ttl] = nil end
  end
end

-- When the next record goes, from now on.
local function next_expiry(self, now)
  local first = math.huge
  for _, queue in pairs(self.queues) do
    first = math.min(first, queue[queue.first].expires - now)
  end
  return first < math.huge and math.max(1, first) or nil
end

---@return true|moontide.StoreRecord|nil
---@return moontide.StoreError|nil
function Store:add(record)
  local now = core.clock.now()
  sweep(self, now)
  local known = record.key and self.by_key[place(record)]
  if known then return known end
  record.size = size_of(record)
  if self.count >= self.most or self.bytes + record.size > self.most_bytes then
    return nil, {
      message = ("the store has %d records, %d bytes"):format(self.count, self.bytes), full = true,
      retry_after = next_expiry(self, now),
    }
  end
  self.by_id[record.id] = record
  if record.key then self.by_key[place(record)] = record end
  self.count, self.bytes = self.count + 1, self.bytes + record.size
  return true
end

function Store:get(id)
  sweep(self, core.clock.now())
  return self.by_id[id] or false
end

function Store:find(scope, key)
  sweep(self, core.clock.now())
  return self.by_key[scope .. "\0\0" .. key] or false
end

function Store:update(id, fields)
  local record = self.by_id[id]
  if not record then return false end
  for name, value in pairs(fields) do record[name] = value end
  return true
end

function Store:finish(id, fields, ttl)
  local record = self.by_id[id]
  if not record then return false end
  local size = OVERHEAD + text_size(fields.result, 0)
  if self.bytes - record.size + size > self.most_bytes then
    return nil, { message = "the result does not fit into the store", full = true, final = true }
  end
  self:update(id, fields)
  self.bytes = self.bytes - record.size + size
  record.request, record.size, record.expires = nil, size, core.clock.now() + ttl
  local queue = self.queues[ttl] or { first = 1, last = 0 }
  self.queues[ttl] = queue
  queue.last = queue.last + 1
  queue[queue.last] = record
  return true
end

-- Its process ends, and it with it.
Store.release = Store.update

function Store:remove(id)
  local record = self.by_id[id]
  if record then drop(self, record) end
  return true
end

-- Nothing of an earlier process is here, and nothing of another.
function Store:unfinished()
  return {}
end

function Store:adopt()
  return true
end

function Store:is_alive()
  return true
end

return M
