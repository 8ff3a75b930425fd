--- `tide.component`: a startup phase, a stop hook and a readiness check under one name.
--
-- The stop is registered when the start has finished, so that what never started is never stopped,
-- and so that stops run in reverse order of the finished starts: the hooks are LIFO by nature; in a
-- stop_phase of its own choice a stop waits for those of later starts.

local fail = require("moontide.site").fail
local options = require "moontide.options"
local shutdown = require "moontide.shutdown"
local startup = require "moontide.startup"

local M = {}

local SPECS = {
  needs = "string|table", start = "function", stop = "function", check = "function|table",
  retry = "table", stop_phase = "string", timeout = "duration", stop_timeout = "duration",
}

---@class moontide.ComponentOptions
---@field needs string|string[]|nil components that start before it and stop after it
---@field start fun(ctx: moontide.Context)|nil
---@field stop fun(reason: tide.Reason, ctx: moontide.Context)|nil only after a finished start
---@field check function|table|nil a readiness check, or its options with the function as [1]
---@field retry tide.RetryPolicy|nil of the start
---@field timeout number|string|nil of one attempt
---@field stop_phase string|nil a shutdown phase; default: with the hooks
---@field stop_timeout number|string|nil

---@class moontide.Component
---@field name string
---@field state "idle"|"started"|"stopping"|"stopped"
local Component = {}
Component.__index = Component

-- Where stops run that name no phase.
local HOOKS = "shutdown-hooks"

local components = {}
local last_stop = {} -- stop phase -> entry of the latest start that stops there

--- Says that the component has stopped by itself: its stop is not called, a wait for it is over.
function Component:stopped()
  self.state = "stopped"
end

local function stop_of(self)
  return function(reason, ctx)
    if self.state == "stopped" then return end
    self.state = "stopping"
    if self.opts.stop then self.opts.stop(reason, ctx) end
    self.state = "stopped"
  end
end

-- The start has finished: from now on there is something to stop.
local function register_stop(self)
  local opts = self.opts
  local phase = opts.stop_phase or HOOKS
  local handle = shutdown:builtin_task(phase, self.name, stop_of(self), {
    timeout = opts.stop_timeout, site = opts.site,
  })
  if not handle then return end
  handle.entry.builtin = false
  local earlier = last_stop[phase]
  if opts.stop_phase and earlier and earlier.state == "waiting" then earlier.after = self.name end
  last_stop[phase] = handle.entry
end

-- The check is refused where the component is declared; it runs once there is something to check.
local function declare_check(name, check)
  if not check then return end
  local declare = require("moontide.readiness").declare
  if type(check) == "function" then return declare(name, {}, check) end
  local opts = {}
  for key, value in pairs(check) do
    if key ~= 1 then opts[key] = value end
  end
  return declare(name, opts, check[1])
end

local function start_of(self)
  return function(ctx)
    if self.opts.start then self.opts.start(ctx) end
    self.state = "started"
    register_stop(self)
    if self.check then self.check:activate() end
  end
end

-- The phase of a profile that has this name is used; else it is a phase of its own.
local function declare(self)
  local opts, name = self.opts, self.name
  if startup.tasks[name] and startup.profile then
    local handle = startup:add(name, name, { timeout = opts.timeout, retry = opts.retry },
      start_of(self))
    handle.entry.site = opts.site
    return
  end
  startup:phase(name, { after = opts.needs, timeout = opts.timeout, on_fail = opts.retry },
    start_of(self))
  startup.tasks[name].by_name[name].site = opts.site
end

--- Declares a component.
---@param name string
---@param opts moontide.ComponentOptions
---@return moontide.Component
function M.new(name, opts)
  options.name("component", name)
  local what = ("component %q"):format(name)
  local checked = options.check(what, opts, SPECS, {})
  if components[name] then fail(what .. " is declared already") end
  if checked.stop_phase and not shutdown.tasks[checked.stop_phase] then
    fail(what .. ": " .. require("moontide.suggest").unknown("shutdown phase",
      checked.stop_phase, shutdown.names))
  end
  checked.site = require("moontide.site").caller()
  local self = setmetatable({ name = name, opts = checked, state = "idle" }, Component)
  self.check = declare_check(name, checked.check)
  declare(self)
  components[name] = self
  return self
end

local function needs_of(self)
  local needs = self.opts.needs
  return type(needs) == "string" and { needs } or needs or {}
end

--- What cannot be of the declared components: one that would stop after what it needs. Asked when
--- the shutdown pipeline is sealed.
---@return string[] errors
function M.errors()
  local place, errors = {}, {}
  for i, name in ipairs(shutdown.graph:order()) do place[name] = i end
  for name, self in pairs(components) do
    local own = self.opts.stop_phase or HOOKS
    for _, need in ipairs(needs_of(self)) do
      local other = components[need] and (components[need].opts.stop_phase or HOOKS)
      if other and place[own] > place[other] then
        errors[#errors + 1] = ("%s: component %q stops in phase %s, after %q that it needs, which "
          .. "stops in %s"):format(self.opts.site, name, own, need, other)
      end
    end
  end
  table.sort(errors)
  return errors
end

--- The declared components, by name.
function M.all()
  return components
end

return M
