--- Real processes in e2e tests, with a blocking API: the helper turns luv's loop
--- while it waits, every wait is bounded, and what a test leaves running is
--- killed when the test ends.
---
---     local proc = require "support.process"
---
---     it("exits 0 on SIGTERM", function()
---       local app = proc.start { script = [[
---         local tide = require "moontide"
---         tide.http.listen { port = tonumber(os.getenv "PORT") }
---       ]] }
---       app:wait_ready()                        -- /health/ready answers 200
---       app:signal("TERM")
---       local code, signal = app:wait()
---       assert.equal(0, code)
---       assert.is_nil(signal)
---       local record = app:wait_log { component = "lifecycle", phase = "db" }
---       assert.is_true(record.duration_ms < 100)
---     end)
---
--- A started program finds in its environment: PORT (`app.port`, free, for the
--- script's own listener), MOONTIDE_MANAGE__PORT (`app.manage_port`; not with
--- `manage = false`), MOONTIDE_STATE_DIR and RUNTIME_DIRECTORY (in `app.dir`, a temporary one),
--- and what the test gives in `env`. The script is `app.dir/app.lua`. The program
--- is $MOONTIDE unless `program` says another.
---
--- Start processes inside the test. What is started in `setup` or `before_each`
--- is killed when the file ends.
local uv = require "luv"
local logline = require "support.logline"
local loop = require "support.loop"

local M = {}

--- Bound of every wait that names no other (seconds).
M.default_timeout = 15

---@class test.Process
---@field pid integer
---@field dir string temporary directory, removed after the test
---@field port integer free when it was picked; $PORT in the program
---@field manage_port integer? where its management listener is asked to be
---@field started_at number loop.now() at the start
---@field exited_at number? loop.now() when its end was seen
local Process = {}
Process.__index = Process

-- ---- ports and directories ---------------------------------------------------

-- Ports given so far: between giving one and its use anybody could get it again.
local given = {}

local function can_bind(port)
  local socket = uv.new_tcp()
  -- libuv says that a port is in use only when it listens.
  local free = socket:bind("127.0.0.1", port) and socket:listen(1, function() end)
  socket:close()
  uv.run("nowait")
  return free
end

--- A TCP port of 127.0.0.1 on which nobody listens now. It is below those that the
--- kernel gives to clients, and random, so that tests at the same time do not meet.
---@return integer
function M.free_port()
  for _ = 1, 100 do
    local port = 10000 + string.unpack("I4", uv.random(4)) % 22000
    if not given[port] and can_bind(port) then
      given[port] = true
      return port
    end
  end
  error("found no free port", 0)
end

local directories = {}

--- A new directory, removed with all it holds when the test ends.
---@return string path
function M.temp_dir()
  local path = assert(uv.fs_mkdtemp((os.getenv "TMPDIR" or "/tmp") .. "/moontide-test-XXXXXX"))
  directories[#directories + 1] = path
  return path
end

---@param path string
---@param text string
function M.write_file(path, text)
  local file = assert(io.open(path, "wb"))
  assert(file:write(text))
  assert(file:close())
end

---@param path string
---@return string? text nil when there is no such file
function M.read_file(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read("a")
  file:close()
  return text
end

local function remove_tree(path)
  for name, kind in uv.fs_scandir_next, (uv.fs_scandir(path)) do
    local inner = path .. "/" .. name
    if kind == "directory" then remove_tree(inner) else uv.fs_unlink(inner) end
  end
  uv.fs_rmdir(path)
end

-- ---- start -------------------------------------------------------------------

local live = {} -- Process -> true, started and not yet cleaned up

-- The environment of the test run less its settings of a host.
local function environment(extra)
  local env = {}
  for name, value in pairs(uv.os_environ()) do
    if not name:match("^MOONTIDE_.*") or name == "MOONTIDE_SOURCE" then env[name] = value end
  end
  env.LD_PRELOAD = nil -- the sanitizer's runtime is in the program itself
  for name, value in pairs(extra) do env[name] = value or nil end
  local list = {}
  for name, value in pairs(env) do list[#list + 1] = name .. "=" .. tostring(value) end
  return list
end

-- A real pipe, as a supervisor gives one (uv_spawn's own would be a socket).
local function open_pipe()
  local fds = assert(uv.pipe({ nonblock = true }, {}))
  local reader = uv.new_pipe(false)
  assert(reader:open(fds.read))
  return reader, fds.write
end

local function start_reading(self, name)
  local pipe, chunks = self.pipes[name], self.chunks[name]
  pipe:read_start(function(err, data)
    if data then
      chunks[#chunks + 1] = data
    elseif not pipe:is_closing() then
      if err then chunks[#chunks + 1] = "\n[read error: " .. err .. "]\n" end
      pipe:close()
    end
  end)
end

local function script_path(self, script)
  if not script:find("\n") and script:find("%.lua$") then return script end
  local path = self.dir .. "/app.lua"
  M.write_file(path, script)
  return path
end

-- Program and arguments that the options ask for.
local function command_line(self, options)
  local program = options.program or os.getenv "MOONTIDE"
  if not program then error("set $MOONTIDE to the binary under test (ctest does)", 0) end
  local argv = {}
  local function append(list)
    for _, word in ipairs(list or {}) do argv[#argv + 1] = tostring(word) end
  end
  append(options.argv)
  append(options.flags)
  if options.script then argv[#argv + 1] = script_path(self, options.script) end
  append(options.args)
  return program, argv
end

---@class test.StartOptions
---@field script? string Lua source (has a newline) or the path of a .lua file
---@field argv? string[] words before everything, e.g. { "check" }
---@field flags? string[] words before the script, e.g. { "--startup-timeout", "3" }
---@field args? string[] words after the script
---@field env? table<string, string|number|false> added to the environment; false removes
---@field stdin? string given to the program, then closed; default /dev/null
---@field manage? boolean false: no MOONTIDE_MANAGE__PORT
---@field program? string instead of $MOONTIDE
---@field cwd? string
---@field hold_stderr? boolean do not read standard error before read_stderr()
---@field inherit? integer a file descriptor that the program finds as number 3
---@field dir? string use this directory (of an earlier process, say)

--- Starts a program; raises when it cannot be executed.
---@param options test.StartOptions
---@return test.Process
function M.start(options)
  local self = setmetatable({ pipes = {}, chunks = { stdout = {}, stderr = {} } }, Process)
  self.dir = options.dir or M.temp_dir()
  self.port = M.free_port()
  local env = {
    PORT = self.port, MOONTIDE_STATE_DIR = self.dir .. "/state", RUNTIME_DIRECTORY = self.dir,
  }
  if options.manage ~= false then
    self.manage_port = M.free_port()
    env.MOONTIDE_MANAGE__PORT = self.manage_port
  end
  for name, value in pairs(options.env or {}) do env[name] = value end
  local program, argv = command_line(self, options)

  local stdin = options.stdin and uv.new_pipe(false) or nil
  local out, err
  self.pipes.stdout, out = open_pipe()
  self.pipes.stderr, err = open_pipe()
  self.started_at = loop.now()
  local handle, pid = uv.spawn(program, {
    args = argv,
    env = environment(env),
    cwd = options.cwd,
    stdio = { stdin, out, err, options.inherit },
    detached = true, -- a group of its own, so that nothing of it survives
  }, function(code, signal)
    self.exited_at = loop.now()
    self.code = signal == 0 and code or nil
    self.exit_signal = signal ~= 0 and signal or nil
    self.handle:close()
  end)
  uv.fs_close(out)
  uv.fs_close(err)
  if not handle then
    self.pipes.stdout:close()
    self.pipes.stderr:close()
    error(("cannot start %s: %s"):format(program, pid), 2)
  end
  self.handle, self.pid = handle, pid
  live[self] = true
  start_reading(self, "stdout")
  if not options.hold_stderr then start_reading(self, "stderr") end
  if stdin then
    stdin:write(options.stdin)
    stdin:shutdown(function() stdin:close() end)
  end
  return self
end

--- Starts a stock `lua5.4` that finds the module of the build.
---@param options test.StartOptions
---@return test.Process
function M.start_lua(options)
  local env = {
    LUA_CPATH_5_4 = os.getenv "MOONTIDE_BUILD" .. "/?.so;;",
    LUA_PATH_5_4 = false,
    LD_PRELOAD = os.getenv "MOONTIDE_PRELOAD", -- of a sanitizer, else nil
  }
  for name, value in pairs(options.env or {}) do env[name] = value end
  options.env, options.program, options.manage = env, "/usr/bin/lua5.4", false
  return M.start(options)
end

--- Runs a program to its end.
---@param options test.StartOptions|{ timeout?: number }
---@return integer? code nil when a signal ended it
---@return string stdout
---@return string stderr
---@return test.Process process
function M.run(options)
  local process = M.start(options)
  local code = process:wait(options.timeout)
  return code, process:stdout(), process:stderr(), process
end

-- ---- a process -----------------------------------------------------------------

--- All it has written to standard output so far.
---@return string
function Process:stdout()
  return table.concat(self.chunks.stdout)
end

--- All it has written to standard error so far.
---@return string
function Process:stderr()
  return table.concat(self.chunks.stderr)
end

--- Reads standard error after all (see `hold_stderr`).
function Process:read_stderr()
  start_reading(self, "stderr")
end

---@return boolean
function Process:is_running()
  uv.run("nowait")
  return not self.exited_at
end

-- Raises `message` with the end of what the process said.
local function fail(self, message, level)
  local function tail(text) return #text > 4000 and "..." .. text:sub(-4000) or text end
  local state = "running"
  if self.exited_at then
    state = ("ended, code %s signal %s"):format(self.code, self.exit_signal)
  end
  error(("%s\n-- pid %d, %s\n-- stdout:\n%s\n-- stderr:\n%s"):format(message, self.pid, state,
    tail(self:stdout()), tail(self:stderr())), level + 1)
end

--- Sends a signal, by name ("TERM", "SIGTERM") or number; nothing when it has ended.
---@param signal string|integer
function Process:signal(signal)
  if self.exited_at then return end
  if type(signal) == "string" then signal = "sig" .. signal:lower():gsub("^sig", "") end
  self.signalled_at = loop.now()
  uv.kill(self.pid, signal)
end

--- Waits for its end and for what it wrote; raises when it does not end in time.
---@param timeout? number seconds
---@return integer? code nil when a signal ended it
---@return integer? signal the number of the signal that ended it
function Process:wait(timeout)
  local ended, message = loop.try(function() return self.exited_at end,
    timeout or M.default_timeout, "the end of the process")
  if not ended then fail(self, message, 2) end
  -- A child of it may hold the pipes: this is not worth more than a moment.
  loop.try(function()
    return self.pipes.stdout:is_closing() and self.pipes.stderr:is_closing()
  end, 0.5)
  return self.code, self.exit_signal
end

--- Its log so far, a record per line that is one; `record.line` is the text.
---@return table<string, any>[]
function Process:logs()
  local records = {}
  for line in self:stderr():gmatch("([^\n]*)\n") do
    local record = logline.parse(line)
    if record then
      record.line = line
      records[#records + 1] = record
      record.index = #records
    end
  end
  return records
end

local function matches(record, what)
  if type(what) == "function" then return what(record) end
  if type(what) == "string" then return record.line:find(what) ~= nil end
  for key, value in pairs(what) do
    if record[key] ~= value then return false end
  end
  return true
end

--- The log records that match: a Lua pattern for the line, a table of fields that
--- must be equal, or a predicate on the record.
---@param what string|table|fun(record: table): any
---@param after? table only records after this one
---@return table<string, any>[]
function Process:find_logs(what, after)
  local found = {}
  for _, record in ipairs(self:logs()) do
    if record.index > (after and after.index or 0) and matches(record, what) then
      found[#found + 1] = record
    end
  end
  return found
end

--- Waits until the log has such a record and returns the first; raises with what
--- the process said when it does not come.
---@param what string|table|fun(record: table): any see find_logs
---@param timeout? number seconds
---@param after? table only records after this one
---@return table<string, any> record
function Process:wait_log(what, timeout, after)
  local seen, found = -1, nil
  local _, message = loop.try(function()
    -- Parsing again is worth it only when something new has come.
    local ended = self.exited_at and self.pipes.stderr:is_closing()
    if #self.chunks.stderr ~= seen then
      seen = #self.chunks.stderr
      found = self:find_logs(what, after)[1]
    end
    return found or ended
  end, timeout or M.default_timeout, "a log record")
  if not found then
    local text = type(what) == "string" and what or ""
    if type(what) == "table" then
      for key, value in pairs(what) do text = text .. (" %s=%s"):format(key, value) end
    end
    fail(self, (message or "the process ended without a log record") .. ": " .. text, 2)
  end
  return found
end

--- Waits until standard output has this pattern; returns its captures.
---@param pattern string
---@param timeout? number seconds
---@return any ...
function Process:wait_stdout(pattern, timeout)
  local found, message = loop.try(function()
    local captures = { self:stdout():match(pattern) }
    return captures[1] and captures
  end, timeout or M.default_timeout, "standard output to match " .. pattern)
  if not found then fail(self, message, 2) end
  return table.unpack(found)
end

-- Waits until GET `path` on a port answers with this status.
local function wait_answer(self, port, path, status, timeout)
  local http = require "support.http_client"
  local last
  local ok, message = loop.try(function()
    if self.exited_at then return "ended" end
    local response, err = http.get(port, path, { timeout = 2 })
    last = response and response.status or err
    return last == status
  end, timeout or M.default_timeout, ("GET %s to answer %d"):format(path, status))
  if ok == true then return end
  fail(self, ("%s, last: %s"):format(message or "the process ended before", last), 3)
end

--- Waits until /health/ready on the management listener answers 200.
---@param timeout? number seconds
function Process:wait_ready(timeout)
  wait_answer(self, assert(self.manage_port, "no management port"), "/health/ready", 200, timeout)
end

--- Waits until the management listener answers at all.
---@param timeout? number seconds
function Process:wait_alive(timeout)
  wait_answer(self, assert(self.manage_port, "no management port"), "/health/live", 200, timeout)
end

--- Seconds from the last signal sent by `signal` to the end.
---@return number
function Process:seconds_to_end()
  return self.exited_at - self.signalled_at
end

--- Kills it and its children; returns when it has ended.
function Process:kill()
  uv.kill(-self.pid, "sigkill") -- also what outlived it in its group
  if not self.exited_at then
    loop.wait(function() return self.exited_at end, 10, "the end of a killed process")
  end
end

-- ---- cleaning up -----------------------------------------------------------------

--- Kills and forgets all processes, removes all temporary directories. Runs by
--- itself after each test.
function M.cleanup()
  for process in pairs(live) do
    process:kill()
    for _, pipe in pairs(process.pipes) do
      if not pipe:is_closing() then pipe:close() end
    end
  end
  live = {}
  for _, path in ipairs(directories) do remove_tree(path) end
  directories = {}
  uv.run("nowait")
end

-- Also loadable without busted, by a bench.
if package.loaded["busted"] or package.loaded["busted.core"] then
  local busted = require "busted"
  local in_test_from_start = true
  busted.subscribe({ "test", "start" }, function()
    in_test_from_start = next(live) == nil
    return nil, true
  end)
  busted.subscribe({ "test", "end" }, function()
    if in_test_from_start then M.cleanup() end
    return nil, true
  end)
  busted.subscribe({ "file", "end" }, function()
    M.cleanup()
    return nil, true
  end)
end

return M
