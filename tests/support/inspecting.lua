--- Asking a test's lifecycle (support/lifecycle.lua) what one asks at the console.
---
---     local data, text = inspecting.ask(life, "tasks", { max = 5 })
---     local message = inspecting.refused(life, "where", 99)
local json = require "moontide.json"

local M = {}

-- Runs fn(...) as a task of a scope that nobody cancels, as a session's is, to its end.
local function run(life, fn, ...)
  local task = require "moontide.task"
  local scope = task.new_scope "test session"
  local results
  local args = table.pack(...)
  local t = scope:start({ name = "asks", kind = "console", detached_errors = true }, function()
    results = table.pack(pcall(fn, table.unpack(args, 1, args.n)))
  end)
  for _ = 1, 100 do
    if t.outcome then break end
    life:advance(0.01)
  end
  assert(t.outcome, "the command did not come to an end")
  return table.unpack(results, 1, results.n)
end

--- What a command returns, and how that is shown; it must be what JSON can say.
---@param life test.Life
---@param name string
---@return table data
---@return string text
function M.ask(life, name, ...)
  local ok, data = run(life, require("moontide.console.inspect")[name], ...)
  assert(ok, data)
  local text = getmetatable(data).__console(data)
  assert(type(text) == "string" and utf8.len(text), "no text")
  assert(not text:find "[\0-\9\11-\31\127]" or name == "where", "control characters in the text")
  json.encode(data)
  return data, text
end

--- The message of a command that is refused.
---@return string
function M.refused(life, name, ...)
  local ok, message = run(life, require("moontide.console.inspect")[name], ...)
  assert(not ok, name .. " was not refused")
  return message
end

--- Ends a lifecycle, so that nothing of it falls due in the next, which has the same clock.
---@param life test.Life|nil
function M.finish(life)
  if not life or life.code then return end
  life:signal "SIGTERM"
  life:advance(120)
  assert(life.code, "the lifecycle did not end")
end

--- The first of a list whose fields are as wanted.
---@param list table[]
---@param wanted table<string, any>
---@return table|nil
function M.find(list, wanted)
  for _, item in ipairs(list) do
    local fits = true
    for key, value in pairs(wanted) do fits = fits and item[key] == value end
    if fits then return item end
  end
end

return M
