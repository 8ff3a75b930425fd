--- What it costs that Lua can be interrupted, and how soon it is.
---
---   lua5.4 tests/bench/interrupt_cost.lua [pairs]   (with LUA_CPATH_5_4=BUILD/?.so)
---
--- 1. The same work in short windows, by turns with the mechanism (slices with deadlines, tracked
---    functions, the watchdog's thread) and with Lua's own functions, in one Lua state, so that
---    memory and the machine's moods are the same for both. CPU time of the whole process.
--- 2. From the deadline of a slice that spins to the first raise in it.
--- 3. With strace: system calls of a process that runs ten times as many tasks.
local stock = {
  create = coroutine.create, resume = coroutine.resume, wrap = coroutine.wrap,
  close = coroutine.close, xpcall = xpcall,
}
require "moontide"
local core = require "moontide.core"
core.host.watch()

local PAIRS = tonumber(arg[1]) or 60
local WINDOW = 0.05 -- seconds of work in a window
local AIM = 1.02

local now, resume_task, yield = core.clock.now, core.coroutine.resume, coroutine.yield

local ways = {
  with = {
    create = coroutine.create, wrap = coroutine.wrap, close = coroutine.close, xpcall = xpcall,
    resume = coroutine.resume,
    switch = function(co, deadline, value) return resume_task(co, deadline, value) end,
  },
  without = {
    create = stock.create, wrap = stock.wrap, close = stock.close, xpcall = stock.xpcall,
    resume = stock.resume,
    switch = function(co, _, value) return stock.resume(co, value) end,
  },
}

-- ---- the work --------------------------------------------------------------------

local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end

local function pairs_of(way, text)
  return way.wrap(function()
    for name, value in text:gmatch "(%w+)=(%w+)" do yield(name, value) end
  end)
end

--- About what a request handler does: parse, look up, build an answer, all of it protected.
local function handle(way, i)
  local query, list = {}, {}
  for name, value in pairs_of(way, "id=" .. i .. "&page=7&sort=name&order=desc") do
    query[name] = value
  end
  for j = 1, 40 do
    list[j] = { id = j, name = "item " .. j, price = j * 1.25 }
  end
  table.sort(list, function(a, b) return a.price > b.price end)
  local parts = {}
  for j, item in ipairs(list) do
    parts[j] = ("%d:%s:%.2f"):format(item.id, item.name, item.price)
  end
  return #table.concat(parts, ",") + #query.id
end

local work = {
  { "computing (fib)", function() return fib(18) end },
  { "a handler", function(way, i) return select(2, pcall(handle, way, i)) end },
}

--- Each piece of work is a task that awaits twice.
local function body(way, fn, i)
  while true do
    yield()
    fn(way, i)
    i = yield()
  end
end

--- So many tasks with one way; CPU seconds.
local function window(way, fn, count)
  local deadline = now() + 60
  local began = os.clock()
  local co = way.create(body)
  way.resume(co, way, fn, 0)
  for i = 1, count do
    way.switch(co, deadline, i)
    way.switch(co, deadline, i)
  end
  return os.clock() - began
end

local function calibrate(fn)
  local count = 1
  while window(ways.without, fn, count) < WINDOW do count = count * 2 end
  return count
end

-- ---- figures ---------------------------------------------------------------------

local function percentile(sorted, p)
  return sorted[math.max(1, math.ceil(p * #sorted))]
end

--- Each ratio is of a window to the mean of its two neighbours of the other way.
local function ratios_of(fn)
  local count, list = calibrate(fn), {}
  local before = window(ways.without, fn, count)
  for i = 1, PAIRS do
    local with = window(ways.with, fn, count)
    local after = window(ways.without, fn, count)
    list[i] = with / ((before + after) / 2)
    before = after
  end
  return list
end

local function report_cost(name, list)
  local sum, squares = 0, 0
  for _, ratio in ipairs(list) do sum = sum + ratio end
  local mean = sum / #list
  for _, ratio in ipairs(list) do squares = squares + (ratio - mean) ^ 2 end
  local half = 2 * (squares / (#list - 1) / #list) ^ 0.5
  table.sort(list)
  print(("%-18s %d pairs   median %.4f   mean %.4f   95%% bounds %.4f .. %.4f   %s"):format(name,
    #list, percentile(list, 0.5), mean, mean - half, mean + half,
    mean + half <= AIM and "within 2 %" or "ABOVE 2 %"))
end

local function measure_switch()
  local count, best = 300000, { with = math.huge, without = math.huge }
  for _ = 1, 9 do
    for name, way in pairs(ways) do
      local took = window(way, function() end, count) / (2 * count)
      best[name] = math.min(best[name], took)
    end
  end
  print(("a task switch (resume and yield): %.0f ns, by coroutine.resume %.0f ns"):format(
    best.with * 1e9, best.without * 1e9))
end

local function measure_latency(count)
  local late = {}
  while #late < count do
    local deadline = now() + 0.030 + (#late % 17) * 0.001
    local spins, raised
    resume_task(coroutine.create(function()
      pcall(function()
        spins = true
        while true do end
      end)
      raised = now()
    end), deadline)
    if spins and raised then -- not raised before the pcall, on a machine that is that busy
      late[#late + 1] = (raised - deadline) * 1e3
    end
  end
  table.sort(late)
  print(("first raise after the deadline: n=%d   p50 %.3f   p99 %.3f   max %.3f ms"):format(
    count, percentile(late, 0.5), percentile(late, 0.99), late[#late]))
end

-- ---- system calls ----------------------------------------------------------------

--- The child's part: tasks that await once, with deadlines that come nearer and nearer, which is
--- the worst case for whatever has to be told of a new deadline. The loop turns once for every
--- thousand.
local function run_tasks(count)
  local task = require "moontide.task"
  local far, scope = now() + 3600, task.new_scope("counted")
  local started = 0
  repeat
    for _ = 1, 1000 do
      started = started + 1
      scope:start({ deadline = far - started * 1e-3 }, task.sleep, 0)
    end
    core.host.turn(false)
  until started >= count
  while scope:count() > 0 do core.host.turn(false) end
  os.exit(0, true)
end

local function count_calls(count)
  local path = os.tmpname()
  os.execute(("strace -f -c -o %s lua5.4 %s tasks %d"):format(path, arg[0], count))
  local total
  for line in io.lines(path) do
    local calls = line:match "^%s*100%.00%s+[%d.]+%s+%d+%s+(%d+)"
    total = calls or total
  end
  os.remove(path)
  return tonumber(total)
end

local function measure_calls()
  if not os.execute "command -v strace >/dev/null" then
    return print "no strace: system calls are not counted"
  end
  local few, many = count_calls(10000), count_calls(100000)
  print(("system calls: %d with 10,000 tasks, %d with 100,000: %.4f for each more"):format(few,
    many, (many - few) / 90000))
end

if arg[1] == "tasks" then
  run_tasks(tonumber(arg[2]))
else
  for _, entry in ipairs(work) do
    report_cost(entry[1], ratios_of(entry[2]))
  end
  measure_switch()
  measure_latency(200)
  measure_calls()
end
