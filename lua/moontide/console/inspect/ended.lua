--- `ended()`: the tasks that ended last, with outcome and who cancelled them.
local arguments = require "moontide.console.inspect.arguments"
local core = require "moontide.core"
local ended = require "moontide.task.ended"
local json = require "moontide.json"
local view = require "moontide.view"

local M = {}

local SPECS = { max = { default = 50, most = ended.KEPT }, find = "text", outcome = "text" }
local OUTCOMES = { "ok", "failed", "timed_out", "cancelled", "interrupted", "abandoned" }

local sessions = setmetatable({}, { __mode = "k" }) -- for which those that end well are kept, too

-- From the first time that a session asks until it ends.
local function watch_for(session)
  if not session or sessions[session] then return end
  sessions[session] = true
  ended.watch()
  session:on_close(ended.unwatch)
end

local function fits(entry, opts)
  if opts.outcome and entry.outcome ~= opts.outcome then return false end
  local word = opts.find
  return not word or (entry.name or ""):find(word, 1, true) ~= nil
    or entry.site:find(word, 1, true) ~= nil
end

local function row_of(entry, now)
  return {
    ago = math.max(0, now - entry.at), name = entry.name, id = entry.id, kind = entry.kind,
    outcome = entry.outcome, seconds = entry.seconds, error = entry.error, by = entry.by,
    site = entry.site, scope = entry.scope, more = entry.more,
  }
end

local function check_outcome(outcome)
  for _, known in ipairs(OUTCOMES) do
    if known == outcome then return end
  end
  error("ended: " .. require("moontide.suggest").unknown("outcome", outcome, OUTCOMES), 0)
end

local function why(entry)
  local text = (entry.error or ""):gsub("^cancelled: ", "")
  if entry.by then text = ("%s, by %s"):format(text, entry.by) end
  return entry.more > 0 and ("%s (and %d more)"):format(text, entry.more) or text
end

local function render(data)
  local rows = {}
  for i, entry in ipairs(data.tasks) do
    rows[i] = {
      view.time(entry.ago), entry.name or entry.id and "task " .. entry.id or "a task",
      entry.outcome, view.time(entry.seconds), why(entry), entry.site,
    }
  end
  return view.lines(
    ("%d ended %s; these are kept: %s"):format(data.total, data.total == 1 and "task" or "tasks",
      data.all and "all that ended since this session asked first, before that those that failed"
      or "those that did not end well"),
    #rows > 0 and view.columns({ ">ago", "task", "outcome", ">took", "why", "from" }, rows) or nil,
    view.more(data.found - #rows))
end

--- The tasks that ended last, the latest first. Those that did not end well are always remembered;
--- the others from the first call of a session on, until it ends.
---@param session moontide.console.Session|nil
---@param opts { max: integer|nil, find: string|nil, outcome: string|nil }|nil
---@return { total: integer, found: integer, all: boolean, tasks: table[] }
function M.ended(session, opts)
  opts = arguments.options("ended", opts, SPECS)
  if opts.outcome then check_outcome(opts.outcome) end
  watch_for(session)
  local now, list, found = core.clock.now(), json.array {}, 0
  for _, entry in ipairs(ended.list()) do
    if fits(entry, opts) then
      found = found + 1
      if found <= opts.max then
        list[found] = row_of(entry, now)
      end
    end
  end
  return view.new({
    total = ended.total(), found = found, all = session ~= nil, tasks = list,
  }, render)
end

return M
