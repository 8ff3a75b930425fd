--- `trace(target, { max = 20, per = "1s" })`: shows the calls of a function, or what happens to a
--- phase, a task or a check, as events of the session. The limit is no choice: what
--- is traced may be called a million times a second. A trace ends with its session.

local duration = require "moontide.duration"
local limits = require "moontide.console.trace.limit"
local suggest = require "moontide.suggest"
local targets = require "moontide.console.trace.target"
local text = require "moontide.text"
local view = require "moontide.view"

local M = {}

local CALL = "trace(\"app.query\", { max = 20, per = \"1s\" })"
local WANTED = "\"module.function\", a table and a key, the name of a phase, task or check, "
  .. "\"task NAME\", or \"lifecycle\", \"checks\" or \"tasks\" for all of them"
local OPTIONS = { "max", "per" }
local MOST, SHORTEST, LONGEST, TRACES = 1000, 0.1, 3600, 16

---@class moontide.console.Trace
---@field label string
---@field limit moontide.console.Limit
---@field stop fun(self: moontide.console.Trace)

---@type table<moontide.console.Session, table<string, moontide.console.Trace>>
local of_session = setmetatable({}, { __mode = "k" })

-- ---- what was given -----------------------------------------------------------------------------

local function refuse(message, ...)
  error(("trace: " .. message):format(...), 0)
end

local function check_options(opts)
  if type(opts) ~= "table" then
    refuse("a limit is wanted, since what is traced may be called at any rate: %s", CALL)
  end
  for key in pairs(opts) do
    if key ~= "max" and key ~= "per" then
      refuse("%s", suggest.unknown("option", tostring(key), OPTIONS))
    end
  end
  local max = math.tointeger(opts.max)
  if not max or max < 1 or max > MOST then
    refuse("max, how many are shown, is a whole number from 1 to %d: %s", MOST, CALL)
  end
  local per, message = duration.parse(opts.per == nil and 1 or opts.per, "trace: per")
  if not per then error(message, 0) end
  if per < SHORTEST or per > LONGEST then
    refuse("per is a time from %s to %s", duration.format(SHORTEST), duration.format(LONGEST))
  end
  return max, per
end

-- The name of a table that is a module; else what it is.
local function table_name(t)
  for name, module in pairs(package.loaded) do
    if rawequal(module, t) then return name end
  end
  return tostring(t):match "^table: 0x%x+$" or "table"
end

-- What is to be traced: a field with a function, or a part of the lifecycle.
local function target_of(session, target, key)
  if type(target) == "table" then
    if key == nil then refuse("a table and a key of it are wanted: trace(app, \"query\", ...)") end
    return targets.field(target, key, table_name(target))
  elseif type(target) ~= "string" or target == "" then
    refuse("%s is wanted, not a %s: %s", WANTED, target == "" and "text without a name"
      or type(target), CALL)
  end
  local happening, names = targets.happening(target)
  local field = not happening and targets.path(target, session:environment())
  if happening or field then return field, happening end
  if target:find "[.:]" then
    refuse("%s leads to no loaded module or global; a table and a key do, too: "
      .. "trace(app, \"query\", ...)", target)
  end
  refuse("%s", suggest.unknown("phase, task or check", target, names))
end

-- ---- the traces of a session --------------------------------------------------------------------

local function traces_of(session)
  local list = of_session[session]
  if not list then
    list = {}
    of_session[session] = list
    session:on_close(function()
      of_session[session] = nil
      for _, trace in pairs(list) do trace:stop() end
    end)
  end
  return list
end

local function end_one(list, label)
  list[label]:stop()
  list[label] = nil
end

local function listed(list)
  local rows = {}
  for i, label in ipairs(suggest.names(list)) do
    local limit = list[label].limit
    rows[i] = { target = label, max = limit.max, per = limit.per, limit = limit:text() }
  end
  return view.new(rows, function(data)
    if #data == 0 then return ("nothing is traced: %s; what: %s"):format(CALL, WANTED) end
    local cells = {}
    for i, row in ipairs(data) do cells[i] = { row.target, row.limit } end
    return view.columns({ "traced", "limit" }, cells)
  end)
end

local function stop(session, label)
  local list = traces_of(session)
  if not list[label] then refuse("%s", suggest.unknown("trace", label, suggest.names(list))) end
  end_one(list, label)
  return view.new({ target = label, on = false, text = ("%s is traced no more"):format(label) },
    function(data) return data.text end)
end

local function start(session, target, key, opts)
  local max, per = check_options(opts)
  local field, happening = target_of(session, target, key)
  local label = (field or happening).label
  local list = traces_of(session)
  if list[label] then end_one(list, label) end
  if #suggest.names(list) >= TRACES then
    refuse("%d at a time are enough: trace() lists them", TRACES)
  end
  local function tell(line) -- names are a script's, and may move a terminal's cursor
    session:send { type = "event", event = "trace", target = label, text = text.one_line(line) }
  end
  local fields = { label = label, tell = tell, limit = limits.new(max, per, tell) }
  session:audit("trace", label)
  if field then
    fields.owner, fields.key = field.owner, field.key
    list[label] = require("moontide.console.trace.call").start(fields)
  else
    fields.fits, fields.of_tasks = happening.fits, happening.of_tasks
    list[label] = require("moontide.console.trace.events").start(fields)
  end
  local said = ("tracing %s, %s; trace(\"%s\", false) ends it"):format(label,
    fields.limit:text(), label)
  return view.new({ target = label, max = max, per = per, on = true, text = said },
    function(data) return data.text end)
end

--- `trace(target, { max =, per = })` or `trace(table, key, { max =, per = })` begins,
--- `trace(target, false)` ends, `trace()` lists.
---@param session moontide.console.Session
---@param target any
---@return table
function M.trace(session, target, ...)
  if target == nil and select("#", ...) == 0 then return listed(traces_of(session)) end
  local key, opts = nil, ...
  if type(target) == "table" then
    key, opts = ...
    if type(key) == "table" then refuse("a table and a key of it: trace(app, \"query\", ...)") end
  end
  if opts ~= false then return start(session, target, key, opts) end
  if type(target) == "table" then target = targets.field(target, key, table_name(target)).label end
  return stop(session, tostring(target))
end

return M
