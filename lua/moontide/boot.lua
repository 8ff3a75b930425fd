--- From a loaded script to a running startup: the main chunk as the first task, the sealing of the
--- pipelines, and the ways in which either can go wrong.

local core = require "moontide.core"
local config = require "moontide.config"
local exit = require "moontide.exit"
local lazy = require "moontide.lazy"
local record = require "moontide.pipeline.record"
local shutdown = require "moontide.shutdown"
local site = require "moontide.site"
local startup = require "moontide.startup"
local task = require "moontide.task"

local failing = lazy "moontide.failing"
local uncaught = lazy "moontide.uncaught"

local write, protected = core.log.write, pcall

local M = {}

--- How long the main chunk may take, in seconds.
M.MAIN_LIMIT = 30

---@class moontide.Main the main chunk
---@field task moontide.Task|nil
---@field parked boolean it waits in run_until_terminated
M.main = { parked = false }

-- ---- errors of the script -----------------------------------------------------------------------

-- Whether the library refused what the script gave it: the error was raised by a function of the
-- library, and not one that passes on somebody's failure.
local function refused(err)
  local kind = type(err) == "table" and rawget(err, "kind")
  if kind then return kind == "invalid" end
  for level = 3, 12 do
    local info = debug.getinfo(level, "S")
    if not info then return false end
    if info.what ~= "C" then
      local file = site.library_file(info.source)
      return file ~= nil and not file:find "^task"
    end
  end
  return false
end

local function on_main_error(err)
  if exit.is_exit(err) then return err end
  M.main.invalid = refused(err) and record.text(err) or nil
  M.main.traceback = record.stack(debug.traceback("", 2))
  return err
end

-- ---- sealing ------------------------------------------------------------------------------------

local function append(list, more)
  for _, item in ipairs(more or {}) do list[#list + 1] = item end
end

local function seal_pipeline(pipeline)
  local errors = {}
  pipeline.graph:configure(config)
  append(errors, pipeline.graph:seal())
  append(errors, pipeline:task_errors())
  pipeline.sealed = true
  if #errors == 0 then require("moontide.pipeline.times").apply(pipeline) end
  return errors
end

--- Seals the shutdown pipeline, alone when a shutdown comes before the script has loaded.
---@return string[] errors
function M.seal_shutdown()
  if shutdown.sealed then return {} end
  config.seal()
  require("moontide.shutdown.builtin").register(shutdown)
  return seal_pipeline(shutdown)
end

local function warnings(doubtful)
  local list = {}
  append(list, config.warnings)
  append(list, startup.graph.warnings)
  append(list, shutdown.graph.warnings)
  append(list, doubtful)
  return list
end

--- Seals configuration and both pipelines, and checks what can only be seen together.
---@return string[] errors all of them
---@return string[] warnings
function M.seal()
  local errors = {}
  append(errors, config.seal())
  if #errors > 0 then return errors, {} end
  append(errors, seal_pipeline(startup))
  append(errors, M.seal_shutdown())
  if #errors > 0 then return errors, {} end
  local wrong, doubtful = require("moontide.pipeline.times").judge(startup, shutdown)
  local component = package.loaded["moontide.component"]
  if component then append(wrong, component.errors()) end
  local http = package.loaded["moontide.http"]
  if http then append(wrong, http.errors()) end
  return wrong, warnings(doubtful)
end

-- What the log looks like: from as early on as it is known, for the main chunk writes to it too.
local function apply_log()
  core.log.set_level(config.get("log.level"))
  local format = config.get("log.format")
  if format ~= "auto" then core.log.set_format(format) end -- by tty already
end

-- What of the configuration the core keeps for itself.
local function apply_config()
  apply_log()
  local file = config.get("log.file")
  if file then
    local ok, message = core.log.set_file(file)
    if ok == nil then
      write(2, "log", ("log.file %s: %s; the log goes on to standard error"):format(file,
        tostring(message)))
    end
  end
  core.host.set_log_timeout(config.get("log.close_timeout"))
  core.watchdog.shutdown_total(require("moontide.settings").shutdown_total())
end

-- ---- from sealed to ready -----------------------------------------------------------------------

-- How long a start may take before others can look into it, in seconds.
local SLOW_START = 0.05
-- How long after it is ready a process opens its control socket, in seconds.
local SOON = 0.002

-- Others may find us: who takes over, who looks in. That costs 200,000 instructions to open, so
-- it comes when those who waited for us have had their answers, but before a process that they
-- start then can look for us. (With --takeover it is open already.) A start that takes long can be
-- looked into earlier.
local function open_control(after)
  if not core.host.flags.console then return end
  task.start({ name = "control socket", scope = task.pipeline, kind = "internal" }, function()
    task.sleep(after)
    if core.state.get() ~= "stopped" and config.get "control.socket" then
      require("moontide.control").open()
    end
  end)
end

local function become_ready()
  local http = package.loaded["moontide.http"]
  local takeover = package.loaded["moontide.takeover"]
  if takeover and not takeover.permission() then return end
  if http then
    local ok, err = pcall(http.listen_all, true)
    if not ok then return failing.startup(record.text(err)) end
  end
  local background = package.loaded["moontide.background"]
  if background then background.begin() end
  if not require("moontide.states").move("ready") then return end
  write(1, "lifecycle", "ready", "duration_ms",
    math.floor((core.clock.now() - M.started_at) * 1000 + 0.5))
  if core.notify.active() then require("moontide.systemd").ready() end
  if takeover then takeover.done() end
  -- A program that embeds us has a life of its own, and says itself when it ends.
  if core.host.mode ~= "embedded" then exit.watch_idle() end
  open_control(SOON)
end

local function startup_ended(outcome, run)
  if outcome == "ok" and not shutdown.is_running() then return become_ready() end
  if outcome == "failed" then failing.startup(run.failure.message) end
end

-- First the listener that answers at once, then those that wait for `ready`; a port in use is said
-- before anything else is.
local function open_http()
  local managed = core.host.flags.manage and config.get("manage") ~= false
  if managed then require("moontide.http").manage_open() end
  local http = package.loaded["moontide.http"]
  if http then http.bind_all() end
  if managed then require("moontide.http.manage").announce() end
end

local function rise()
  local ok, err = pcall(open_http)
  if not ok then return failing.refuse({ record.text(err) }, 1) end
  startup.start(require("moontide.settings").startup(), startup_ended)
end

-- Begins to rise; in a task. Who follows another process asks it for its sockets first.
local function begin()
  apply_config()
  if package.loaded["moontide.control"] then open_control(0) end -- the name is known only now
  if core.notify.active() then require("moontide.systemd").watch() end
  local takeover = package.loaded["moontide.takeover"]
  if takeover then return takeover.claim(rise) end
  rise()
end

--- Seals and begins to rise, unless a shutdown came first.
---@return string[]|nil errors
function M.seal_and_begin()
  if M.begun then return end
  M.begun = true
  if shutdown.is_running() then return end
  local errors, doubtful = M.seal()
  if #errors > 0 then return errors end
  for _, message in ipairs(doubtful) do write(2, "lifecycle", message) end
  begin()
end

-- ---- the main chunk -----------------------------------------------------------------------------

local function main_body(chunk, ...)
  local results = table.pack(xpcall(chunk, on_main_error, ...))
  if not results[1] then error(results[2], 0) end
end

--- The loading is over: the watchdog's dump no longer has it.
function M.main_loaded()
  local place = M.main.place
  M.main.place = nil
  if place then core.watchdog.finish(place) end
end

local function settle_main(t)
  if t.outcome ~= "ok" then return failing.main(t, M.main, M.begun) end
  local errors = M.seal_and_begin()
  if errors then failing.refuse(errors) end
end

-- Nothing else would ever end a process that fails here, as when a script took away what the
-- library needs of Lua.
local function main_ended(t)
  M.main_loaded()
  local ok, err = protected(settle_main, t)
  if ok then return end
  write(3, "lifecycle", "the host failed at the end of the main chunk", "error", err)
  core.host.stop(exit.FAILED)
end

-- ---- what the host calls ------------------------------------------------------------------------

-- A C program asks in its own words.
local function on_drain(text, by_force)
  local reasons = require "moontide.reason"
  shutdown:run(reasons.parse(text) or reasons.new("unknown", { text = text }))
  if by_force then shutdown.force "forced by the program" end
end

--- Connects the library to the host; once, when it is set up.
function M.load_library()
  core.host.set_pump(task.pump)
  task.on_uncaught(function(t) failing.task(t) end)
  core.host.on_uncaught(function(...) uncaught.report(...) end)
  core.host.on_drain(on_drain)
  core.signals.on(function(...) require("moontide.signals").dispatch(...) end)
  -- In a state that is the host's own; in another, os.exit is its maker's.
  if core.host.owns_lua then exit.install() end
end

--- Loads a script without starting anything, for check, plan, why and graph.
---@param path string
---@return table|nil app
---@return string[]|nil errors
function M.describe(path)
  return require("moontide.describe").describe(path)
end

-- Where the watchdog answers while the loop does not, and what may be asked there. It opens that by
-- itself, when the process has lived for a while.
local function place_line()
  local name = config.get "control.socket" and (config.get "name" or "unnamed") or nil
  core.watchdog.place(config.get "control.dir", name, #(config.get "console.uids" or {}) > 0)
  core.watchdog.policy(require("moontide.settings").console_policy())
end

--- `tide.config { ... }`: the script's settings, once, before the pipelines are sealed.
---@param settings table
function M.configure(settings)
  config.set(settings, site.caller())
  apply_log()
  core.watchdog.shutdown_total(config.get("shutdown.timeout")) -- a signal may come while it loads
  place_line()
end

-- As lua5.4 sets it; the command line has done so itself, and in a state that is not the host's own
-- the global is its maker's.
local function set_arg(path)
  if not core.host.owns_lua or rawget(_G, "arg") then return end
  arg = table.move(core.host.args, 1, #core.host.args, 1, { [0] = path }) -- luacheck: globals arg
end

--- Takes the compiled script; nothing runs yet.
---@param chunk function
---@param path string
function M.load(chunk, path)
  M.main.chunk, M.main.path = chunk, path
  set_arg(path)
  config.set_default("name", core.host.name or (path:match "([^/]+)$" or path):gsub("%.lua$", ""))
end

--- The settings that are not the script's: the environment, then whoever made the host.
function M.load_settings()
  config.load_env(core.host.environ())
  local options = core.host.options
  for _, kind in ipairs { "startup", "shutdown" } do
    local total = options[kind .. "_timeout"]
    if total then config.override(kind .. ".timeout", total, "the program") end
  end
end

--- Runs the main chunk as the first root task.
function M.start()
  local main = M.main
  M.started_at = core.clock.now()
  open_control(SLOW_START)
  M.load_settings()
  apply_log()
  core.watchdog.shutdown_total(config.get("shutdown.timeout")) -- a signal may come at once
  place_line()
  main.place = core.watchdog.begin("main chunk", main.path)
  main.task = task.start({
    name = "main chunk", scope = task.root, children = task.root, kind = "main chunk",
    timeout = M.MAIN_LIMIT,
    limit = ("the main chunk's limit of %d s"):format(M.MAIN_LIMIT), on_end = main_ended,
    detached_errors = true,
  }, main_body, main.chunk, table.unpack(core.host.args))
end

return M
