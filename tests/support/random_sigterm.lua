--- SIGTERM at a random moment between exec and a little after ready: what must
--- hold, whatever the moment. For the e2e spec and, with a larger count, the bench.
local loop = require "support.loop"
local proc = require "support.process"
local uv = require "luv"

local M = {}

-- Three components, one after the other; each says in a file what it does. The
-- file is written at once: nothing of it is lost when a signal kills.
local SCRIPT = [[
local tide = require "moontide"
local trace = assert(io.open(os.getenv "TRACE", "a"))
trace:setvbuf "no"
local function say(...) trace:write(table.concat({ ... }, " "), "\n") end
say "loaded"
tide.config { name = "sigterm", shutdown = { linger = 0 } }
local before
for _, name in ipairs { "one", "two", "three" } do
  tide.component(name, {
    needs = before and { before } or nil,
    start = function()
      say("begin", name)
      tide.sleep("3ms")
      say("started", name)
    end,
    stop = function() say("stopped", name) end,
  })
  before = name
end
tide.http.listen { name = "api", port = tonumber(os.getenv "PORT") }
]]

---@class test.SigtermRun
---@field delay number seconds from exec to the signal
---@field phase "before handlers"|"starting"|"ready" where the signal found it
---@field took number seconds from the signal to the end
---@field fault string? what was wrong

local function words(trace, verb)
  local list = {}
  for name in trace:gmatch(verb .. " (%a+)\n") do list[#list + 1] = name end
  return list
end

-- What is wrong with how it ended; nil when nothing is.
local function judge(process, trace)
  if process.exit_signal then
    if process.exit_signal ~= 15 then return "ended by signal " .. process.exit_signal end
    if trace ~= "" then return "killed by SIGTERM although the script ran" end
    return nil
  end
  if process.code ~= 0 then return "exit code " .. tostring(process.code) end
  local started, stopped = words(trace, "started"), words(trace, "stopped")
  if #started ~= #stopped then
    return ("%d started, %d stopped"):format(#started, #stopped)
  end
  for i, name in ipairs(started) do
    if stopped[#stopped + 1 - i] ~= name then return "stopped in a wrong order" end
  end
  return nil
end

local function start(trace_file)
  return proc.start { script = SCRIPT, env = { TRACE = trace_file } }
end

--- Seconds from exec to ready of the script, on this machine, at this moment.
---@return number
function M.time_to_ready()
  local process = start(proc.temp_dir() .. "/trace")
  process:wait_ready()
  local took = loop.now() - process.started_at
  process:kill()
  return took
end

--- One start, one SIGTERM after `delay` seconds.
---@param delay number
---@return test.SigtermRun
function M.once(delay)
  local file = proc.temp_dir() .. "/trace"
  local process = start(file)
  local at = process.started_at + delay
  -- Not a timer: those have milliseconds, and the start is a few of them.
  while loop.now() < at do uv.run("nowait") end
  local early = process.exited_at
  process:signal "TERM"
  local run = { delay = delay }
  local ended, message = pcall(process.wait, process, 20)
  local trace = proc.read_file(file) or ""
  run.phase = process.exit_signal and "before handlers"
    or #words(trace, "started") < 3 and "starting" or "ready"
  if not ended then
    run.fault = "hangs: " .. message
  elseif early then
    run.fault = "ended by itself"
  else
    run.took = process:seconds_to_end()
    run.fault = judge(process, trace)
  end
  if run.fault then
    run.fault = ("%s\n-- SIGTERM %.2f ms after exec\n-- trace:\n%s-- stderr:\n%s"):format(run.fault,
      delay * 1000, trace, process:stderr())
  end
  return run
end

--- `count` runs, spread at random from exec to 50 ms after ready.
---@param count integer
---@return test.SigtermRun[]
---@return number time_to_ready seconds
function M.runs(count)
  local ready = M.time_to_ready()
  local list = {}
  for i = 1, count do
    -- Half of them in the start-up proper, which is short beside the 50 ms.
    local span = i % 2 == 0 and ready or ready + 0.05
    list[i] = M.once(math.random() * span)
    proc.cleanup()
  end
  return list, ready
end

return M
