--- `tide.run_until_terminated`: the script says that it is done and waits for the end.

local boot = require "moontide.boot"
local config = require "moontide.config"
local core = require "moontide.core"
local exit = require "moontide.exit"
local site = require "moontide.site"
local task = require "moontide.task"

local M = {}
local main = boot.main

-- In the main chunk of a process: what came before was the loading, and here it waits.
local function park_main()
  main.parked = true
  boot.main_loaded()
  exit.held = exit.held + 1
  local errors = boot.seal_and_begin()
  if errors then require("moontide.failing").refuse(errors) end
  local this = task.current()
  if this and this == main.task then this.deadline = false end -- the loading is over
  task.waiter("run_until_terminated"):wait()
end

-- In a stock interpreter: the loop runs here.
local function run_loop()
  core.host.watch()
  boot.started_at = core.clock.now()
  boot.load_settings()
  exit.held = exit.held + 1
  main.parked = true
  local errors
  task.start({ name = "main chunk", scope = task.pipeline, kind = "internal" }, function()
    errors = boot.seal_and_begin()
    if errors then require("moontide.failing").refuse(errors) end
  end)
  local code = core.host.run()
  require("moontide.signals").remove_process_hooks()
  if errors then error(table.concat(errors, "\n"), 3) end
  if config.get("shutdown.exit_process") then exit.leave_process(code) end
  return code
end

-- Who calls from where nobody can wait is told before any of it has happened.
local function check_caller(module)
  if module and main.parked then
    site.fail "run_until_terminated is running already; it is called once, outside callbacks"
  elseif not module and not task.current() then
    site.fail "run_until_terminated waits: call it in the main chunk or a task, not in a callback"
  end
end

--- Seals the pipelines, starts up, serves, and returns when the process is to end.
---@param opts { signals: string[] }|nil signals that shut down, beside SIGTERM and SIGINT
---@return integer|nil code in a stock interpreter
function M.run(opts)
  if main.described then exit.unwind() end
  local module = core.host.mode == "module"
  check_caller(module)
  require("moontide.signals").install_process_hooks(opts and opts.signals)
  if module then return run_loop() end
  park_main()
end

return M
