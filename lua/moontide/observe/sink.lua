--- Log sinks, `tide.log.sink`: the script's own way of writing the log, beside the core's.
--
-- Records wait in a queue of the sink's, and a task writes them, so `write` may await, and a slow
-- sink holds up nobody: it loses records, and the log says how many. One that fails, or that writes
-- nothing for too long, is given no more. At the end of a shutdown, behind the report, each has
-- `log.close_timeout` in all to write what it has, to flush and to close.

local core = require "moontide.core"
local fail = require("moontide.site").fail
local options = require "moontide.options"
local readers = require "moontide.observe.readers"
local record = require "moontide.pipeline.record"
local task = require "moontide.task"

local M = {}

local LEVELS = { debug = 0, info = 1, warn = 2, error = 3 }
local NAMES = { [0] = "debug", "info", "warn", "error" }

local SPECS = {
  name = "string", level = "string", write = "function", flush = "function", close = "function",
  queue = "count", timeout = "duration",
}
local DEFAULTS = { level = "info", queue = 10000, timeout = 10 }

-- Records that one task writes: `timeout` is for so many.
local BATCH = 256

---@class moontide.SinkOptions
---@field write async fun(line: string, level: "debug"|"info"|"warn"|"error") a record as a JSON
---object, without its end of line; an error ends the sink
---@field flush nil|async fun() at the end: what `write` has kept back goes out
---@field close nil|async fun() at the end, or when the sink is removed
---@field name? string in messages; default "sink 1", ...
---@field level? "debug"|"info"|"warn"|"error" the least that it is given; default "info"
---@field queue? integer records that may wait, default 10000; more are dropped
---@field timeout? number|string for 256 records, and for a flush; default 10 s

---@class moontide.Sink : moontide.LogReader
---@field name string
---@field first integer place of the oldest waiting record
---@field last integer place of the newest; the queue is empty when it is below `first`
---@field task moontide.Task|nil that writes
---@field dropped integer since the log was last told
local Sink = {}
Sink.__index = Sink

local sinks = {} ---@type moontide.Sink[]
local made = 0

local function forget(sink)
  readers.remove(sink)
  for i, other in ipairs(sinks) do
    if other == sink then table.remove(sinks, i) break end
  end
  sink.over, sink.first, sink.last, sink.lines, sink.levels = true, 1, 0, {}, {}
end

local function tell_dropped(sink)
  if sink.dropped == 0 then return end
  local count = sink.dropped
  sink.dropped = 0
  core.log.write(2, "log", ("%s is too slow: records are lost to it"):format(sink.name), "sink",
    sink.name, "records", count)
end

-- ---- writing ------------------------------------------------------------------------------------

local function write_batch(sink)
  for _ = 1, BATCH do
    local at = sink.first
    if at > sink.last then return end
    local line, level = sink.lines[at], sink.levels[at]
    sink.first, sink.lines[at], sink.levels[at] = at + 1, nil, nil
    sink.opts.write(line, NAMES[level])
  end
end

local start

local function batch_ended(sink, t)
  sink.task = nil
  if sink.over then return end
  if t.outcome ~= "ok" then
    forget(sink)
    core.log.write(3, "log", ("%s failed and gets no more records: %s"):format(sink.name,
      record.text(t.error)), "sink", sink.name, "traceback", t.stack)
    return
  end
  if sink.last - sink.first < sink.opts.queue // 2 then tell_dropped(sink) end
  if sink.first <= sink.last then start(sink) end
end

function start(sink)
  sink.task = task.start({
    name = "log " .. sink.name, scope = task.pipeline, kind = "internal",
    timeout = sink.opts.timeout, limit = "its timeout", detached_errors = true,
    on_end = function(t) batch_ended(sink, t) end,
  }, write_batch, sink)
end

--- Takes a record into the queue; a full one loses it.
---@param line string
---@param level integer
function Sink:read(line, level)
  if self.last - self.first + 1 >= self.opts.queue then
    self.dropped = self.dropped + 1
    return
  end
  local at = self.last + 1
  self.last, self.lines[at], self.levels[at] = at, line, level
  if not self.task then start(self) end
end

--- Records that the log had no room for.
---@param count integer
function Sink:lost(count)
  self.dropped = self.dropped + count
end

--- Whether the running task writes to a sink: its own records would never end.
---@return boolean
function M.is_writing()
  local t = task.current()
  if not t then return false end
  for _, sink in ipairs(sinks) do
    if sink.task == t then return true end
  end
  return false
end

-- ---- the end ------------------------------------------------------------------------------------

local function close(sink)
  while sink.task do sink.task:join() end
  if sink.over then return end
  tell_dropped(sink)
  forget(sink)
  if sink.opts.flush then sink.opts.flush() end
  if sink.opts.close then sink.opts.close() end
end

local function close_within(sink, seconds)
  local ok, err = pcall(task.timeout, seconds, close, sink)
  if ok then return end
  forget(sink)
  core.log.write(2, "log", ("%s did not end well: %s"):format(sink.name, record.text(err)), "sink",
    sink.name)
end

--- Writes what waits, flushes and closes it, in its timeout; again harmless.
---@async
function Sink:remove()
  if self.over then return end
  readers.flush()
  readers.remove(self)
  close_within(self, self.opts.timeout)
end

--- The process ends: all of them write what they have.
---@async
---@param seconds number for all together
function M.finish(seconds)
  readers.flush()
  local till = core.clock.now() + seconds
  for _, sink in ipairs { table.unpack(sinks) } do
    readers.remove(sink)
    close_within(sink, math.max(till - core.clock.now(), 0.001))
  end
end

--- Adds a sink.
---@param opts moontide.SinkOptions
---@return moontide.Sink
function M.add(opts)
  local checked = options.check("log.sink", opts, SPECS, DEFAULTS)
  options.fn("log.sink: write", checked.write)
  if not LEVELS[checked.level] then
    fail("log.sink: level: " .. require("moontide.suggest").unknown("level", checked.level,
      { "debug", "info", "warn", "error" }))
  end
  made = made + 1
  local sink = setmetatable({
    name = checked.name or "sink " .. made, opts = checked, level = LEVELS[checked.level],
    first = 1, last = 0, lines = {}, levels = {}, dropped = 0,
  }, Sink)
  sinks[#sinks + 1] = sink
  readers.add(sink)
  return sink
end

return M
