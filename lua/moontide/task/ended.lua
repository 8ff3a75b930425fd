--- The tasks that ended last, for who looks in: outcome, reason, and who cancelled them.
---
--- Always those that did not end well, which is when somebody asks; those that did only while
--- somebody is there to ask (`watch`), because ten thousand of them must cost nothing. Texts alone
--- are kept, so that an ended task holds nothing of the script's.
local core = require "moontide.core"

local getinfo, now, sub = debug.getinfo, core.clock.now, string.sub

local M = {}

--- How many are remembered.
M.KEPT = 1000
--- Bytes of an error that are.
local LONGEST = 200

---@class moontide.Ended
---@field at number when it ended, on the clock's scale
---@field outcome string
---@field name string|nil nil: it had none of its own
---@field id integer|nil if somebody had been told it
---@field kind string|nil
---@field site string
---@field scope string
---@field seconds number|nil how long it took; nil: it had not begun
---@field error string|nil
---@field by string|nil who cancelled it
---@field place table|nil where its function is defined, until somebody asks

local ring, last, total = {}, 0, 0

-- The error as a text, without running anything of the script's.
local function text_of(err)
  if type(err) == "table" then
    local message = rawget(err, "message")
    err = type(message) == "string" and message or "a table"
  elseif type(err) ~= "string" then
    err = err ~= nil and "a " .. type(err) or nil
  end
  return err and #err > LONGEST and sub(err, 1, LONGEST) .. "…" or err
end

local function put(entry)
  total = total + 1
  last = last % M.KEPT + 1
  ring[last] = entry
end

--- A task ends; its function is still known.
---@param t moontide.Task
function M.note(t)
  local opts, fn, cancelled = t.opts, t.fn, t.cancelled
  local started, outcome = t.started_at, t.outcome
  local name = opts and opts.name
  put {
    at = now(), outcome = outcome, name = type(name) == "string" and name or nil,
    id = core.task.given(t, "id"), kind = opts and opts.kind or nil, scope = t.scope.name,
    site = opts and opts.site or nil, seconds = started and now() - started or nil,
    error = outcome ~= "ok" and text_of(t.error) or nil, by = cancelled and cancelled.by or nil,
    place = not (opts and opts.site) and type(fn) == "function" and getinfo(fn, "S") or nil,
  }
end

local function finish(entry)
  local place = entry.place
  if place then
    entry.site, entry.place = ("%s:%d"):format(place.short_src, place.linedefined), nil
  end
  entry.site = entry.site or "?"
  return entry
end

--- Those remembered, the latest first.
---@return moontide.Ended[]
function M.list()
  local list = {}
  for i = 0, #ring - 1 do list[i + 1] = finish(ring[(last - i - 1) % #ring + 1]) end
  return list
end

--- How many there ever were of those that are remembered.
---@return integer
function M.total()
  return total
end

local watchers = 0

--- From now on those that end well are remembered, too, until as many have called `unwatch`.
function M.watch()
  watchers = watchers + 1
  if watchers == 1 then core.task.policy("ended", M.note) end
end

function M.unwatch()
  watchers = watchers - 1
  if watchers == 0 then core.task.policy("ended", nil) end
end

return M
