--- A script as it would run: loaded, its main chunk executed, both pipelines sealed, and nothing
--- started. What `check`, `plan`, `why` and `graph` look at.

local boot = require "moontide.boot"
local config = require "moontide.config"
local core = require "moontide.core"
local exit = require "moontide.exit"
local record = require "moontide.pipeline.record"
local shutdown = require "moontide.shutdown"
local startup = require "moontide.startup"
local task = require "moontide.task"

local M = {}

---@class moontide.App
---@field path string
---@field config table `moontide.config`, sealed
---@field startup moontide.Pipeline with `graph` and `budget`
---@field shutdown moontide.Pipeline
---@field budgets { startup: tide.BudgetReport, shutdown: tide.BudgetReport }
---@field warnings string[]

-- Turns the loop until the main chunk has ended: it may await. The tasks that it leaves do not run.
local function run_main(chunk)
  local main = boot.main
  main.described = true
  main.task = task.start({
    name = "main chunk", scope = task.root, children = task.root, kind = "main chunk",
    timeout = boot.MAIN_LIMIT, limit = "the main chunk's limit", detached_errors = true,
    on_end = require("moontide.failing").drop_new,
  }, chunk)
  while not main.task.outcome do
    task.pump()
    if not main.task.outcome then core.host.turn(true) end
  end
  return main.task
end

-- What a failed main chunk tells; nil when it ended well, or asked for the end.
local function failure_of(t)
  if t.outcome == "ok" or exit.is_exit(t.error) then return nil end
  local place = t.outcome ~= "failed" and (t.stack or ""):match "\t([^\t\n]-:%d+: )"
  return { (place or "") .. record.text(t.error) }
end

---@param path string
---@return moontide.App|nil
---@return string[]|nil errors
function M.describe(path)
  local chunk, message = core.host.loadfile(path)
  if not chunk then return nil, { message } end
  boot.load_settings()
  local errors = failure_of(run_main(chunk))
  if errors then return nil, errors end
  local warnings
  errors, warnings = boot.seal()
  if #errors > 0 then return nil, errors end
  return {
    path = path, config = config, startup = startup, shutdown = shutdown, warnings = warnings,
    budgets = { startup = startup.budget, shutdown = shutdown.budget },
  }
end

return M
