--- The tasks that ended last, for who looks in: outcome, reason, and who cancelled them.
---
--- Always those that did not end well, which is when somebody asks; those that did only while
--- somebody is there to ask (`watch`), because ten thousand of them must cost nothing. Of many that
--- one cancellation ended the first are remembered, and how many there were, so that a large scope
--- does not push out everything else. Texts alone are kept: an ended task holds nothing of the
--- script's.
local mechanism = require("moontide.core").task

local given, place = mechanism.given, mechanism.place
local sub = string.sub

local M = {}

--- How many are remembered.
M.KEPT = 1000
--- Of these, how many that one cancellation ended one after the other.
M.ALIKE = 20
--- Bytes of an error that are.
local LONGEST = 200

---@class moontide.Ended
---@field at number when it ended, on the clock's scale
---@field outcome string
---@field name string|nil nil: it had none of its own
---@field id integer|nil if somebody had been told it
---@field kind string|nil
---@field scope string
---@field site string
---@field seconds number|nil how long it took; nil: it had not begun
---@field error string|nil
---@field by string|nil who cancelled it
---@field more integer how many ended right after it by the same cancellation

-- An entry is an array, used again when its turn comes: noting makes no garbage then.
local AT, OUTCOME, NAME, ID, KIND, SCOPE, SITE, LINE, SECONDS, ERROR, BY, MORE =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12

local ring, last, total = {}, 0, 0
-- The cancellation that ended the last one, its entry, and how many entries it has.
local cause, cause_entry, alike = nil, nil, 0

-- The error as a text, without running anything of the script's.
local function text_of(err)
  if type(err) == "table" then
    local message = rawget(err, "message")
    err = type(message) == "string" and message or "a table"
  elseif type(err) ~= "string" then
    return err ~= nil and "a " .. type(err) or false
  end
  return #err > LONGEST and sub(err, 1, LONGEST) .. "…" or err
end

local function next_entry()
  last = last % M.KEPT + 1
  local entry = ring[last]
  if not entry then
    entry = { 0, "", false, false, false, "", false, 0, false, false, false, 0 }
    ring[last] = entry
  end
  return entry
end

-- Whether it is one more of those that a cancellation has ended, and need not be told apart.
local function is_alike(cancelled)
  if not cancelled or cancelled ~= cause then
    cause, alike = cancelled, 1
    return false
  end
  alike = alike + 1
  if alike <= M.ALIKE then return false end
  cause_entry[MORE] = cause_entry[MORE] + 1
  return true
end

-- Who hears of each one at once.
local listeners, tell = {}, false

local function tell_all(t)
  for _, fn in ipairs(table.move(listeners, 1, #listeners, 1, {})) do fn(t) end
end

-- What runs below these raises its end where it was called, and a timeout that passes, or a race
-- that is lost, may be what a program does all day.
local CALLED = { ["tide.timeout"] = true, ["tide.race"] = true }

-- The host's own helpers are cancelled when they are no longer needed, and what is typed at the
-- console has answered who typed it: no news. What had to be stopped by force is.
local function is_no_news(opts, outcome)
  if not opts or outcome == "interrupted" or outcome == "abandoned" then return false end
  local kind = opts.kind
  return kind == "console" or kind == "internal" and outcome == "cancelled" or CALLED[opts.name]
end

local function put(t, opts, cancelled)
  local entry, started, ended_at = next_entry(), t.started_at, t.ended_at
  local name, site = opts and opts.name, opts and opts.site
  entry[AT], entry[OUTCOME], entry[MORE] = ended_at, t.outcome, 0
  entry[NAME] = type(name) == "string" and name
  entry[ID], entry[KIND] = given(t, "id") or false, opts and opts.kind or false
  entry[SCOPE] = t.scope.name
  if site then entry[SITE], entry[LINE] = site, false else entry[SITE], entry[LINE] = place(t) end
  entry[SECONDS] = started and ended_at - started
  entry[ERROR] = t.outcome ~= "ok" and text_of(t.error)
  entry[BY] = cancelled and cancelled.by or false
  cause_entry = entry
end

--- A task ends; its function is still known.
---@param t moontide.Task
function M.note(t)
  local opts, cancelled = t.opts, t.cancelled
  if tell then tell(t) end
  if is_no_news(opts, t.outcome) then return end
  total = total + 1
  if not is_alike(cancelled) then put(t, opts, cancelled) end
end

local function shown(entry)
  local site, line = entry[SITE], entry[LINE]
  return {
    at = entry[AT], outcome = entry[OUTCOME], name = entry[NAME] or nil, id = entry[ID] or nil,
    kind = entry[KIND] or nil, scope = entry[SCOPE],
    site = line and ("%s:%d"):format(site, line) or site or "?",
    seconds = entry[SECONDS] or nil, error = entry[ERROR] or nil, by = entry[BY] or nil,
    more = entry[MORE],
  }
end

--- Those remembered, the latest first.
---@return moontide.Ended[]
function M.list()
  local list = {}
  for i = 0, #ring - 1 do list[i + 1] = shown(ring[(last - i - 1) % #ring + 1]) end
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
  if watchers == 1 then mechanism.policy("ended", M.note) end
end

--- Takes one `watch` back.
function M.unwatch()
  watchers = watchers - 1
  if watchers == 0 then mechanism.policy("ended", nil) end
end

--- Calls `fn` for each task that ends; it must neither raise nor await.
---@param fn fun(t: moontide.Task)
---@return fun() cancel
function M.observe(fn)
  listeners[#listeners + 1], tell = fn, tell_all
  M.watch()
  return function()
    for i, other in ipairs(listeners) do
      if other == fn then
        table.remove(listeners, i)
        M.unwatch()
        break
      end
    end
    tell = #listeners > 0 and tell_all
  end
end

return M
