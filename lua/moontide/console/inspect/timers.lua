--- `timers()`: what is due next: tasks that sleep, deadlines of tasks, timers of the library, and
--- luv timers of scripts.
local arguments = require "moontide.console.inspect.arguments"
local core = require "moontide.core"
local json = require "moontide.json"
local tasks = require "moontide.console.inspect.tasks"
local view = require "moontide.view"
local walk = require "moontide.console.inspect.walk"

local M = {}

local SPECS = { max = { default = 50, most = 500 } }

---@class moontide.inspect.Timer
---@field kind "sleep"|"deadline"|"luv timer"
---@field due number|nil seconds from now; below 0: late; nil: a stopped luv timer
---@field every number|nil seconds
---@field id integer|nil of the task
---@field name string|nil of the task
---@field site string

-- Whether something that is due then is among the `max` soonest so far. Most of many are not.
local function is_soon(list, at, max)
  return #list < max or at < list[max].at
end

-- Adds it in its place, and lets go of the last of too many.
local function keep(list, entry, max)
  local i = #list
  while i > 0 and list[i].at > entry.at do
    list[i + 1] = list[i]
    i = i - 1
  end
  list[i + 1] = entry
  list[max + 1] = nil
end

local function of_tasks(max)
  local list, counts = {}, { sleeps = 0, deadlines = 0 }
  local function see(at, kind, count, t)
    if not at then return end
    counts[count] = counts[count] + 1
    if is_soon(list, at, max) then keep(list, { at = at, kind = kind, task = t }, max) end
  end
  walk.each(function(t)
    see(core.task.due(t), "sleep", "sleeps", t)
    see(t.deadline, "deadline", "deadlines", t)
  end)
  return list, counts
end

local function seconds_of(handle, method)
  local ok, ms = pcall(handle[method], handle)
  return ok and ms and ms > 0 and ms / 1000 or nil
end

-- Asking loads nothing: without luv there are none.
local function of_luv(list, counts, max)
  local uv, now = package.loaded["moontide.uv"], core.clock.now()
  counts.luv = 0
  for _, handle in ipairs(uv and uv.handles and uv.handles() or {}) do
    if handle.type == "timer" and handle.active then
      counts.luv = counts.luv + 1
      local due = handle.handle.get_due_in and seconds_of(handle.handle, "get_due_in")
      keep(list, {
        at = now + (due or 0), kind = "luv timer", site = handle.site,
        every = seconds_of(handle.handle, "get_repeat"),
      }, max)
    end
  end
end

local function row_of(entry, now)
  local t = entry.task
  return {
    kind = entry.kind, due = entry.at - now, every = entry.every, id = t and t.id or nil,
    name = t and tasks.name_of(t) or nil, site = entry.site or t:site(),
  }
end

local function render(data)
  local rows, counts = {}, data.counts
  for i, row in ipairs(data.timers) do
    rows[i] = {
      view.time(row.due), row.kind, row.every and view.time(row.every), row.id, row.name, row.site,
    }
  end
  return view.lines(
    ("%s sleep, %s with a deadline, %s, %s of the library"):format(view.count(counts.sleeps,
      "task"), view.count(counts.deadlines, "task"), view.count(counts.luv, "luv timer"),
      view.count(counts.library, "timer")),
    #rows > 0 and view.columns({ ">due in", "what", ">every", ">id", "task", "from" }, rows) or nil,
    view.more(data.found - #rows))
end

--- What is due next, the soonest first.
---@async
---@param opts { max: integer|nil }|nil default 50, at most 500
---@return { counts: table<string, integer>, found: integer, timers: moontide.inspect.Timer[] }
function M.timers(opts)
  opts = arguments.options("timers", opts, SPECS)
  local list, counts = of_tasks(opts.max)
  of_luv(list, counts, opts.max)
  local alarm = package.loaded["moontide.task.alarm"]
  counts.library = alarm and alarm.count() or 0
  local now, timers = core.clock.now(), json.array {}
  for i, entry in ipairs(list) do timers[i] = row_of(entry, now) end
  return view.new({
    counts = counts, found = counts.sleeps + counts.deadlines + counts.luv, timers = timers,
  }, render)
end

return M
