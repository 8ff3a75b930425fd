--- A lifecycle of its own for each test, on the virtual clock: the library is loaded anew, and what
--- belongs to the process (state, end, signals, log) is replaced by tables that the test can read.
---
---     local lifecycle = require "support.lifecycle"
---
---     it("waits", function()
---       local life = lifecycle.new(function(tide)      -- the main chunk
---         tide.startup:phase("db", function() tide.sleep(1) end)
---       end)
---       life:advance(0.5)
---       assert.equal("starting", life.state)
---       life:signal("SIGTERM")
---       life:advance(10)
---       assert.equal(0, life.code)
---     end)
local M = {}

local real = package.loaded["moontide.core"]
if not real then
  require "moontide"
  real = require "moontide.core"
  real.clock.make_virtual()
end

local LEVELS = { [0] = "debug", "info", "warn", "error" }
local LEGAL = {
  starting = { ready = true, draining = true, stopped = true }, ready = { draining = true },
  draining = { stopped = true }, stopped = {},
}

---@class test.Life
---@field tide moontide
---@field state string
---@field code integer|nil what the process would exit with, once it would
---@field records { level: string, component: string, message: string, fields: table }[]
local Life = {}
Life.__index = Life

local function fake_state(life)
  return {
    get = function() return life.state end,
    was_ready = function() return life.was_ready == true end,
    move = function(to)
      if life.state == to then return false end
      if not LEGAL[life.state][to] then
        return nil, ("no way from %s to %s"):format(life.state, to)
      end
      life.state = to
      life.was_ready = life.was_ready or to == "ready"
      return true
    end,
    on_move = function() end,
  }
end

local function fake_host(life, options)
  local host = setmetatable({}, { __index = real.host })
  host.mode, host.owns_lua = "process", true
  host.args, host.options = {}, options.totals or {}
  host.flags = {}
  host.environ = function() return options.env or {} end
  host.stop = function(code)
    life.code = life.code or code
    life.stops = (life.stops or 0) + 1
  end
  host.exit = function(code) life.exited = code end
  host.on_uncaught = function(fn) life.uncaught = fn end
  host.on_drain = function(fn) life.drain = fn end
  host.on_idle = function(fn) life.on_idle = fn end
  host.script_alive = function() return life.alive == true end
  host.watch = function() end
  return host
end

local function fake_log(life)
  return {
    write = function(level, component, message, ...)
      local fields = {}
      for i = 1, select("#", ...), 2 do
        local key, value = select(i, ...)
        fields[key] = value
      end
      life.records[#life.records + 1] = {
        level = LEVELS[level], component = component, message = message, fields = fields,
      }
    end,
    enabled = function() return true end, set_level = function() end,
    set_format = function() end, release = function() end,
    set_file = function() return true end, flush = function() return true end,
    reopen = function() life.reopened = true return true end, dropped = function() return 0 end,
  }
end

local function fake_signals(life)
  life.watched = { SIGTERM = true, SIGINT = true }
  return {
    on = function(fn) life.on_signal = fn end,
    watch = function(name)
      if name == "SIGKILL" or not tostring(name):find "^SIG" then
        return nil, tostring(name) .. " cannot be handled"
      end
      life.watched[name] = true
      return true
    end,
    unwatch = function(name) life.watched[name] = nil end,
    deliver = function() end,
  }
end

local function fake_watchdog(life)
  life.totals, life.places = {}, {}
  return {
    total = function(which, at) life.totals[which] = at end,
    begin = function(what, site)
      life.places[#life.places + 1] = { what = what, site = site }
      return #life.places
    end,
    finish = function(place) life.places[place].finished = true end,
    phase = function(name) life.phase = name end,
    shutdown_total = function(seconds) life.shutdown_total = seconds end, taken = function() end,
    place = function() end, policy = function() end,
  }
end

local function fake_notify(life, options)
  life.sent = {}
  return {
    active = function() return options.notify ~= nil end,
    send = function(lines) life.sent[#life.sent + 1] = lines end,
    watchdog_interval = function() return options.notify and options.notify.watchdog or 0 end,
    listen_fds = function() return {} end,
  }
end

local function fake_health(life)
  life.health = {}
  return {
    set = function(name, ok, critical, extra, expires_at)
      life.health[name] = { ok = ok, critical = critical, extra = extra, expires_at = expires_at }
    end,
    remove = function(name) life.health[name] = nil end,
    ready = function() return life.state == "ready" end,
  }
end

local function forget_library()
  for name in pairs(package.loaded) do
    if name:find "^moontide" and name ~= "moontide.core" then package.loaded[name] = nil end
  end
end

--- Loads the library anew over a core whose process is the test's.
---@param options { env: table|nil, totals: table|nil, notify: table|nil }|nil
---@return test.Life
function M.world(options)
  options = options or {}
  local life = setmetatable({ state = "starting", records = {} }, Life)
  forget_library()
  local core = setmetatable({
    state = fake_state(life), host = fake_host(life, options), log = fake_log(life),
    signals = fake_signals(life), watchdog = fake_watchdog(life),
    notify = fake_notify(life, options), health = fake_health(life), task = real.task.anew(),
  }, { __index = real })
  package.loaded["moontide.core"] = core
  life.core = core
  local os_exit = os.exit
  life.boot = require "moontide.boot"
  life.boot.load_library()
  life.os_exit, os.exit = os.exit, os_exit
  life.tide = require "moontide.init"
  package.loaded.moontide = life.tide
  return life
end

--- A world whose main chunk is `main(tide, life)`; it has run when this returns.
---@return test.Life
function M.new(main, options)
  local life = M.world(options)
  life.boot.load(function() return main(life.tide, life) end, "test.lua")
  life.boot.start()
  life:turn()
  return life
end

--- Lets everything run that can run now.
function Life:turn()
  self:advance(0)
end

--- Moves the time on, with all that falls due in it.
---@param seconds number
function Life:advance(seconds)
  real.clock.advance(seconds)
  for _ = 1, 3 do -- what the idle hook sets off runs, too
    if self.on_idle and not self.code then
      self.on_idle()
      real.clock.advance(0)
    end
  end
end

--- Delivers a signal.
function Life:signal(name, pid)
  self.counts = self.counts or {}
  self.counts[name] = (self.counts[name] or 0) + 1
  self.on_signal(name, 15, pid or 4242, 0, self.counts[name])
  self:turn()
end

--- Runs a function as a task of the root scope, to the end of what can run now.
function Life:task(fn, ...)
  local t = self.tide.root:spawn(fn, ...)
  self:turn()
  return t
end

--- The records that have all of `wanted`: level, component, or a pattern for the message under
--- `message`; every other key is a field.
function Life:logged(wanted)
  local found = {}
  for _, record in ipairs(self.records) do
    local fits = true
    for key, value in pairs(wanted) do
      if key == "message" then
        fits = fits and record.message:find(value) ~= nil
      elseif key == "level" or key == "component" then
        fits = fits and record[key] == value
      else
        fits = fits and record.fields[key] == value
      end
    end
    if fits then found[#found + 1] = record end
  end
  return found
end

return M
