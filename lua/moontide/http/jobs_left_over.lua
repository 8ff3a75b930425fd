--- Records of jobs in progress whose process is gone, or lives elsewhere: methods of `jobs`.

local core = require "moontide.core"
local store_room = require "moontide.http.store"

local call = store_room.call

local M = {}

local function recover(self, record, request)
  local adopted, err = call(self.store, "adopt", record)
  if err then return nil, err end
  if not adopted then -- another process was first, or it is finished by now
    record, err = call(self.store, "get", record.id)
    if not record then return nil, err or { gone = true } end
    return self:view(record)
  end
  if request and (self.resume or record.state == "QUEUED") then
    return self:run_again(record, request)
  end
  return self:give_up(record)
end

-- In progress, says the record, and nobody is at it. In a drain it is left to the next process.
local function is_abandoned(self, record)
  local is_open = record.state == "QUEUED" or record.state == "RUNNING"
  if not is_open or self.closed or self.recovering[record.id] then return false end
  return record.owner == self.store.owner or not self.store:is_alive(record)
end

--- What a record stands for: one in progress whose process is gone is begun, or given up.
---@async
---@param self moontide.Jobs
---@param record moontide.StoreRecord
---@param new table|nil the request that found it by its key
---@return table|nil job
---@return table|nil why
function M.settle(self, record, new)
  local entry = self.live[record.id]
  if entry then return self:view(entry) end
  if not is_abandoned(self, record) then return self:view(record) end
  local same = new and new.fingerprint == record.fingerprint
  self.recovering[record.id] = true
  local ok, view, err = pcall(recover, self, record, record.request or same and new.request)
  self.recovering[record.id] = nil
  if not ok then error(view, 0) end
  return view, err
end

--- Looks after what earlier processes have left.
---@async
---@param self moontide.Jobs
function M.recover_all(self)
  local list, err = call(self.store, "unfinished", self.scope)
  if err then
    core.log.write(3, "http", "the jobs of earlier processes could not be read", "route", self.name,
      "error", err.message)
  end
  for _, record in ipairs(list or {}) do self:settle(record) end
end

return M
