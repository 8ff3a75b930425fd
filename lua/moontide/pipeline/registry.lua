--- Which tasks belong to which phase, and who may still withdraw one.
--
-- A phase keeps its entries in order of registration. Withdrawing leaves a hole, and holes are
-- swept when they are the majority, so that registering and withdrawing for ever stays flat.

local M = {}

---@class moontide.Entry a task of a phase, as registered
---@field name string
---@field phase string
---@field fn function
---@field own_timeout number|nil seconds; its own limit beside the phase's
---@field after string|nil another task of the phase that must end first
---@field skip_on string[]|nil kinds of reasons that skip it
---@field builtin boolean
---@field state "waiting"|"running"|"done"|"withdrawn"
---@field outcome string|false as of a task of the library, or "skipped"
---@field error any
---@field attempts integer
---@field started_at number|false
---@field ended_at number|false
---@field asked string|nil somebody has asked to skip it while it ran: in which words

-- What all entries have in common as options of the task library: who starts them looks at the
-- outcome itself.
local Entry = { __index = { kind = "phase task", detached_errors = true } }

local RARE = { "skip_on", "retry", "builtin", "detail", "site" }

--- An entry is handed to task.start as its options, so it has no field `timeout`.
function M.entry(phase, name, fn, opts)
  -- One constructor with what every run sets: sixteen fields, so that the table has sixteen places
  -- and never grows on the hot path. (Ten thousand of twice the size no longer fit into a cache.)
  local entry = setmetatable({
    name = name, phase = phase, fn = fn, state = "waiting", attempts = 0, index = 0,
    own_timeout = opts.timeout, deadline = false, limit = false, on_end = false,
    phase_run = false, task = false, outcome = false, started_at = false, ended_at = false,
    after = opts.after,
  }, Entry)
  for _, rare in ipairs(RARE) do
    if opts[rare] ~= nil then entry[rare] = opts[rare] end
  end
  return entry
end

---@class moontide.PhaseTasks
---@field name string
---@field status "pending"|"running"|"done"|"skipped"
---@field outcome string|nil
---@field live integer entries that are not withdrawn
---@field asked string|nil somebody has asked to skip it before it began: in which words
---@field asked_tasks table<moontide.Entry, string>|nil the same of some of its tasks
local Phase = {}
Phase.__index = Phase

function M.phase(name)
  return setmetatable({
    name = name, status = "pending", entries = {}, count = 0, live = 0, by_name = {},
  }, Phase)
end

local function sweep(phase)
  local kept, n = {}, 0
  for i = 1, phase.count do
    local entry = phase.entries[i]
    if entry then
      n = n + 1
      kept[n] = entry
      entry.index = n
    end
  end
  phase.entries, phase.count = kept, n
end

--- Adds an entry. The caller has checked that the name is free.
function Phase:add(entry)
  local n = self.count + 1
  self.count, self.live = n, self.live + 1
  self.entries[n] = entry
  entry.index = n
  self.by_name[entry.name] = entry
end

--- Takes an entry back and frees its name.
function Phase:remove(entry)
  self.entries[entry.index] = false
  self.by_name[entry.name] = nil
  self.live = self.live - 1
  while self.count > 0 and not self.entries[self.count] do
    self.entries[self.count] = nil
    self.count = self.count - 1
  end
  if self.count > 32 and self.live < self.count // 2 then sweep(self) end
end

--- The entries in order of registration, as they are at the call.
---@return moontide.Entry[]
function Phase:list()
  if self.live < self.count then sweep(self) end
  return table.move(self.entries, 1, self.count, 1, {})
end

--- Iterates the entries in order of registration.
function Phase:each()
  local i, entries = 0, self.entries
  return function()
    while i < self.count do
      i = i + 1
      if entries[i] then return entries[i] end
    end
  end
end

---@class moontide.TaskHandle what registering a task returns
local Handle = {}
Handle.__index = Handle

--- Withdraws the task. Asking again gives the same answer.
---@return boolean withdrawn true if the task had not started
function Handle:cancel()
  local entry = self.entry
  if entry.state == "waiting" then
    entry.state, entry.outcome = "withdrawn", "cancelled"
    self.phase:remove(entry)
    if self.phase.status == "running" then self.phase.run:withdrawn(entry) end
  end
  return entry.state == "withdrawn"
end

---@return string|nil outcome
function Handle:outcome()
  return self.entry.outcome
end

function M.handle(phase, entry)
  return setmetatable({ entry = entry, phase = phase }, Handle)
end

return M
