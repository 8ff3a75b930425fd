--- `tasks()`: the tree of live tasks: what each does or waits for, since when, and where it comes
--- from.
---
--- Only so many are looked at closely; the others are counted. How much processor time a task took
--- is not said: that would be two looks at a clock for each slice, of which a busy process has
--- hundreds of thousands a second.
local arguments = require "moontide.console.inspect.arguments"
local core = require "moontide.core"
local json = require "moontide.json"
local task = require "moontide.task"
local view = require "moontide.view"
local walk = require "moontide.console.inspect.walk"

local M = {}

local SPECS = { max = { default = 100, most = 500 }, find = "text" }

--- How deep the tree is shown.
local DEEPEST = 20

---@class moontide.inspect.Task
---@field id integer for `where(id)`
---@field depth integer 0: it belongs to no task
---@field name string
---@field kind string|nil
---@field state "ready"|"running"|"waiting"
---@field waiting_on string|nil
---@field age number|nil seconds since its first slice; nil: it has not begun
---@field deadline_in number|nil seconds
---@field site string
---@field scope string
---@field cancelled string|nil why it is to end

-- A script may have named it anything, and what that says of itself is not to be run.
local function name_of(t)
  local name = t.name
  if type(name) == "string" then return name end
  return type(name) == "number" and tostring(name) or "a " .. type(name)
end
M.name_of = name_of

--- One task as plain data, without a number.
---@param t moontide.Task
---@return table
function M.facts(t)
  local now, cancelled = core.clock.now(), t.cancelled
  return {
    name = name_of(t), kind = t.kind, state = t.state,
    waiting_on = t.waiting_on, age = t.started_at and math.max(0, now - t.started_at) or nil,
    deadline_in = t.deadline and t.deadline - now or nil, site = t:site(),
    scope = t.scope.name, cancelled = cancelled and cancelled.reason or nil,
  }
end

--- The same with the number that `where` takes.
---@param t moontide.Task
---@param depth integer|nil
---@return moontide.inspect.Task
function M.row(t, depth)
  local row = M.facts(t)
  row.id, row.depth = t.id, depth
  return row
end

-- ---- the tree -----------------------------------------------------------------------------------

-- Adds the oldest tasks of a scope with what is below them, `quota` rows at most; returns how many.
local function add_scope(rows, scope, depth, quota)
  local added = 0
  for _, t in ipairs(core.task.oldest(scope, quota)) do
    if added >= quota then break end
    rows[#rows + 1] = M.row(t, depth)
    added = added + 1
    local own = t.own
    while own and depth < DEEPEST and added < quota do
      added = added + add_scope(rows, own, depth + 1, quota - added)
      own = own.outer
    end
  end
  return added
end

-- The rows of each scope. Each has its share, so that one with thousands does not hide the others;
-- what the small ones leave, or have lost meanwhile, is the larger ones'.
local function collect(scopes, max)
  local by_size = table.move(scopes, 1, #scopes, 1, {})
  table.sort(by_size, function(a, b) return a.live < b.live end)
  local left = max
  for i, entry in ipairs(by_size) do
    walk.breathe()
    entry.rows = {}
    local quota = left // (#by_size - i + 1)
    if quota > 0 then left = left - add_scope(entry.rows, entry.scope, 0, quota) end
  end
end

-- The scopes that no task owns, with how many tasks are in each and below it.
local function survey()
  local scopes, by_scope, total = {}, {}, 0
  local function entry_of(scope)
    local entry = by_scope[scope]
    if not entry then
      entry = { scope = scope, name = scope.name, live = 0 }
      by_scope[scope] = entry
      scopes[#scopes + 1] = entry
    end
    return entry
  end
  walk.each(function(t)
    local scope = t.scope
    local owner = scope.owner
    while owner do
      scope = owner.scope
      owner = scope.owner
    end
    local entry = entry_of(scope)
    entry.live, total = entry.live + 1, total + 1
  end)
  table.sort(scopes, function(a, b) return a.name < b.name end)
  return scopes, total
end

local function tree(max)
  local scopes, total = survey()
  collect(scopes, max)
  local rows, list = {}, {}
  for i, entry in ipairs(scopes) do
    table.move(entry.rows, 1, #entry.rows, #rows + 1, rows)
    list[i] = { name = entry.name, tasks = entry.live, shown = #entry.rows }
  end
  return rows, list, total
end

-- ---- those of a name ----------------------------------------------------------------------------

-- A function that says whether a task's name or place has a word. A task without a name of its own
-- has one by its number, which is not made up for this; places are few, so each is looked at once.
local function finder(word)
  local known = {}
  local function site_has(t)
    local file, line = core.task.place(t)
    if not file then return false end
    local lines = known[file] or {}
    known[file] = lines
    if lines[line] == nil then
      lines[line] = ("%s:%d"):format(file, line):find(word, 1, true) ~= nil
    end
    return lines[line]
  end
  return function(t)
    local opts = t.opts
    local name = (opts and opts.name or core.task.given(t, "id")) and name_of(t)
    if name and name:find(word, 1, true) then return true end
    if opts and opts.site then return opts.site:find(word, 1, true) ~= nil end
    return site_has(t)
  end
end

local function matching(word, max)
  local rows, found, total, has_word = {}, 0, 0, finder(word)
  walk.each(function(t)
    total = total + 1
    if has_word(t) then
      found = found + 1
      if found <= max then rows[found] = M.row(t, 0) end
    end
  end)
  return rows, found, total
end

-- ---- showing ------------------------------------------------------------------------------------

--- What it does, in a few words: "sleep", "task db, to end: the process shuts down".
---@param row table of `facts`
---@return string
function M.doing(row)
  local text = (row.waiting_on or row.state):gsub("^task task ", "task ")
  return row.cancelled and ("%s, to end: %s"):format(text, row.cancelled) or text
end

local function render(data)
  local rows = {}
  for i, row in ipairs(data.tasks) do
    rows[i] = {
      row.id, ("  "):rep(row.depth) .. row.name, row.kind, M.doing(row), view.time(row.age),
      row.site,
    }
  end
  local scopes = {}
  for i, scope in ipairs(data.scopes) do scopes[i] = ("%s: %d"):format(scope.name, scope.tasks) end
  local head = view.count(data.total, "task")
  if data.find then
    head = ("%d of %s with %q"):format(data.found, head, data.find)
  elseif #scopes > 0 then
    head = ("%s (%s)"):format(head, table.concat(scopes, ", "))
  end
  return view.lines(view.cut(head, 200),
    #rows > 0 and view.columns({ ">id", "task", "kind", "doing", ">age", "from" }, rows) or nil,
    view.more(data.found - #rows))
end

--- The tree of live tasks, each scope's oldest first; or those whose name or place has a word.
---@async
---@param opts { max: integer|nil, find: string|nil }|nil default 100 rows, at most 500
---@return { total: integer, found: integer, tasks: moontide.inspect.Task[], scopes: table[] }
function M.tasks(opts)
  opts = arguments.options("tasks", opts, SPECS)
  local data = { find = opts.find, scopes = json.array {} }
  if opts.find then
    data.tasks, data.found, data.total = matching(opts.find, opts.max)
  else
    data.tasks, data.scopes, data.total = tree(opts.max)
    data.found = data.total
  end
  data.counts = task.counts()
  json.array(data.tasks)
  json.array(data.scopes)
  return view.new(data, render)
end

return M
