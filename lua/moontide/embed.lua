--- What a C program puts into the pipelines (core/lua/embed.c calls this), and what it is told.
---
--- A task in C says that it is pending and is done later, from any thread; here it is a task like
--- any other, which waits for that. When its time is over the program's `cancel` is called, and has
--- the task's grace to say that it is done.

local core = require "moontide.core"
local embed = require "moontide.core.embed"
local task = require "moontide.task"

local M = {}

local function pipeline(kind)
  return require("moontide." .. kind)
end

---@param kind "startup"|"shutdown"
---@param name string
---@param opts table
function M.phase(kind, name, opts)
  pipeline(kind):phase(name, opts)
end

-- By token: the waiter, and what holds the token.
local pending = {}

local function judge(status, message)
  if status ~= 0 then error(message, 0) end
end

-- After a cancellation: what the program still does has the task's grace.
local function cancelled(spec, token, waiter)
  embed.cancel(spec, token)
  pcall(task.shield, require("moontide.task.alarm").grace, function() waiter:wait() end)
end

-- The body of a task in C.
local function body(name, spec)
  local holder, token, message = embed.run(spec)
  if not holder then return judge(token, message) end
  local waiter = task.waiter(name .. ", in C")
  pending[token] = { waiter = waiter, holder = holder }
  local ok, status, text = pcall(waiter.wait, waiter)
  if not ok then cancelled(spec, token, waiter) end
  pending[token] = nil
  if not ok then error(status, 0) end
  judge(status, text)
end

---@param kind "startup"|"shutdown"
---@param phase string
---@param name string
---@param opts table
---@param spec userdata
---@return string|nil message why it is too late
function M.task(kind, phase, name, opts, spec)
  local handle, message = pipeline(kind):task(phase, name, opts, function() body(name, spec) end)
  return not handle and message or nil
end

--- The program says that a task is done.
---@param token userdata of the task
---@param status integer 0: it went well
---@param message string|nil
function M.done(token, status, message)
  local entry = pending[token]
  if entry then entry.waiter:wake(status, message) end
end

---@param name string
---@param opts moontide.CheckOptions
---@param fn fun(): boolean, string|nil
function M.check(name, opts, fn)
  require("moontide.readiness").check(name, opts, fn)
end

-- ---- the program's own work ---------------------------------------------------------------------

-- Waits until the program has ended its last piece of work.
local function wait_for_work()
  local waiter = task.waiter "the program's work"
  if embed.wait_work(function() waiter:wake() end) > 0 then waiter:wait() end
end

-- For shutdown.drain, or until its phase ends; then what is left is named.
local function drain_work()
  local limit = require("moontide.config").get "shutdown.drain"
  local patience = require "moontide.shutdown.patience"
  if patience.wait("service-requests-done", limit, wait_for_work) then return end
  core.log.write(2, "lifecycle", "work of the program is still in flight", "work",
    embed.describe_work())
  task.sleep(0) -- raises if the phase has ended
end

--- Registers what a shutdown does with the program's own work.
---@param shutdown moontide.Shutdown
function M.register(shutdown)
  shutdown:builtin_task("service-unbind", "unbind:program", embed.close_work)
  shutdown:builtin_task("service-requests-done", "drain:program", drain_work, {
    detail = function() return "the program's work: " .. embed.describe_work() end,
  })
end

-- ---- events and numbers -------------------------------------------------------------------------

local TOLD = { phase_began = true, phase_ended = true, task_ended = true }
local observed = false

--- From now on the program is told what happens; again harmless.
function M.observe()
  if observed then return end
  observed = true
  require("moontide.pipeline.observers").add(function(what, ...)
    if TOLD[what] then embed.event(what, ...) end
  end)
  require("moontide.states").on_state(function(from, to, reason)
    embed.moved(from, to, reason and tostring(reason))
  end)
end

local function milliseconds(seconds)
  return math.floor(seconds * 1000 + 0.5)
end

--- The phase that runs, what is left of the total in ms, and how many tasks there are.
---@return string phase "" when none runs
---@return integer slack -1 when no pipeline runs
---@return integer tasks
function M.info()
  local kind = core.state.get() == "draining" and "shutdown" or "startup"
  local run = pipeline(kind).run_state
  local active = run and run.active[1]
  local slack = run and run.total_end and milliseconds(run.total_end - core.clock.now()) or -1
  return active and active.name or "", active and slack or -1, task.counts().live
end

return M
