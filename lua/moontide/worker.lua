--- Workers: a loop with a heartbeat. At shutdown it finishes the batch in hand and starts no other.

local background = require "moontide.background"
local core = require "moontide.core"
local duration = require "moontide.duration"
local exit = require "moontide.exit"
local heartbeat = require "moontide.heartbeat"
local fail = require("moontide.site").fail
local options = require "moontide.options"
local patience = require "moontide.lazy" "moontide.shutdown.patience"
local record = require "moontide.pipeline.record"
local shutdown = require "moontide.shutdown"
local task = require "moontide.task"

local M = {}

local SPECS = {
  every = "duration", drain = "duration", stale_after = "duration", critical = "boolean",
}
local DEFAULTS = { every = 1, drain = 10, critical = true }

---@class moontide.Worker
---@field name string
---@field batches integer finished so far
---@field failures integer of these, how many raised
local Worker = {}
Worker.__index = Worker

local workers = {}

---@class moontide.WorkerContext what a batch is given
local Batch = {}
Batch.__index = Batch

--- Whether the process shuts down: a long batch may end early.
function Batch:stopping()
  return self.worker.stopping
end

--- Progress inside a batch.
function Batch:beat(detail)
  self.worker.heart:beat(detail)
end

--- A step that takes longer than the heartbeat allows.
function Batch:busy(d)
  self.worker.heart:busy(d)
end

local function run_batch(self)
  self.in_hand = core.clock.now()
  local traceback
  local ok, err = xpcall(self.fn, function(message)
    traceback = record.stack(debug.traceback("", 2))
    return message
  end, self.context)
  self.in_hand = nil
  self.batches = self.batches + 1
  if ok then return self.heart:beat() end
  if task.is_cancelled(err) or exit.is_exit(err) then error(err, 0) end
  if err == core.coroutine.interrupted then
    traceback = record.stack(core.coroutine.traceback() or "")
  end
  self.failures = self.failures + 1
  core.log.write(3, "worker", ("worker %s: a batch failed: %s"):format(self.name,
    record.text(err)), "worker", self.name, "failures", self.failures, "traceback", traceback)
end

local function loop(self)
  while not self.stopping do
    run_batch(self)
    if self.stopping then break end
    self.idle = true
    task.sleep(self.opts.every)
    self.idle = false
  end
end

-- Ends a batch that has had its time, before the next phase begins: cancelled, its cleanup may
-- still await for a grace. What it waited for goes to the log.
local function break_off(self, waited, limit)
  local worker = self.task
  core.log.write(2, "worker", ("worker %s: its batch is broken off after %s (%s)"):format(self.name,
    duration.rounded(waited), limit), "worker", self.name,
    "traceback", worker:traceback())
  worker:cancel("the worker's drain is over")
  pcall(task.shield, task.grace, worker.join, worker)
end

-- An idle worker is woken by the end; one with a batch in hand gets its time.
local function stop(self)
  self.stopping = true
  self.heart:stop()
  local worker = self.task
  if not worker then return end
  if self.idle then worker:cancel("the worker has nothing in hand") end
  local began = core.clock.now()
  local ok, err = patience.wait("service-stop", self.opts.drain, worker.join, worker)
  if ok or worker.state == "done" then return end
  local waited = core.clock.now() - began
  local limit = task.is_cancelled(err) and err.limit
  if waited >= self.opts.drain or not limit then
    limit = "its drain of " .. duration.format(self.opts.drain)
  end
  break_off(self, waited, limit)
  error(("worker %s did not finish its batch in %s"):format(self.name, limit), 0)
end

local function detail_of(self)
  return function()
    if not self.in_hand then return "ending" end
    return ("batch in hand for %.1f s"):format(core.clock.now() - self.in_hand)
  end
end

local function ended(self)
  return function(t)
    exit.held = exit.held - 1
    if t.outcome == "ok" or t.outcome == "cancelled" then return end
    require("moontide.uncaught").report("task", t.error, { task = "worker " .. self.name })
  end
end

local function begin(self)
  if self.stopping then return end
  self.task = background.scope:start({
    name = "worker " .. self.name, kind = "worker", site = self.site,
    on_end = ended(self), detached_errors = true,
  }, loop, self)
end

--- Declares a worker; it starts when the process is ready.
---@param name string
---@param opts table|function|nil { every = "1s", drain = "10s", stale_after =, critical = }
---@param fn fun(ctx: moontide.WorkerContext)|nil one batch
---@return moontide.Worker|nil
---@return string|nil message once the workers have been stopped
function M.new(name, opts, fn)
  if fn == nil and type(opts) == "function" then opts, fn = nil, opts end
  options.name("worker", name)
  local what = ("worker %q"):format(name)
  local checked = options.check(what, opts, SPECS, DEFAULTS)
  options.fn(what, fn)
  if workers[name] then fail(what .. " exists already") end
  local self = setmetatable({
    name = name, opts = checked, fn = fn, batches = 0, failures = 0, stopping = false,
    site = require("moontide.site").caller(), chosen_drain = opts ~= nil and opts.drain ~= nil,
  }, Worker)
  self.heart = heartbeat.new(name, {
    every = checked.every, critical = checked.critical,
    stale_after = checked.stale_after or math.max(10 * checked.every, 30),
  })
  self.context = setmetatable({ worker = self, log = require("moontide.observe.log")
    .for_component("worker") }, Batch)
  local handle, message = shutdown:builtin_task("service-stop", "worker:" .. name,
    function() stop(self) end, { detail = detail_of(self) })
  if not handle then -- the workers have stopped: one more would not be
    self.heart:stop()
    return nil, message
  end
  workers[name] = self
  exit.held = exit.held + 1
  background.when_ready(function() begin(self) end)
  return self
end

--- The workers by name.
function M.all()
  return workers
end

--- What each needs at shutdown, for the budget of service-stop.
---@return { name: string, drain: number, site: string, chosen: boolean }[]
function M.drains()
  local list = {}
  for name, worker in pairs(workers) do
    list[#list + 1] = {
      name = name, drain = worker.opts.drain, site = worker.site, chosen = worker.chosen_drain,
    }
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

return M
