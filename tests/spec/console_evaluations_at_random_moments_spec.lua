-- Evaluations that are paused, interrupted and timed out at random moments, several at a time: each
-- ends, what computes beside them is right, and nothing is left behind.
local async = require "support.async"
local core = require "moontide.core"
local evaluations = require "support.evaluations"
local native = require "moontide.core.evaluation"
local task = require "moontide.task"

core.host.watch()

local ROUNDS = 80
local AT_ONCE = 4
-- For a machine that does other things at the same time; what is not stopped runs for ever.
local PROMPT = 10

local programs = {
  [[local list = {}
    while true do for i = 1, 50 do list[i] = { i, tostring(i), { list[i - 1] } } end end]],
  [[while true do
      pcall(function()
        local _ <close> = setmetatable({}, { __close = function() for _ = 1, 1e6 do end end })
        for _ = 1, 100 do string.format("%5.2f", 3.25) end
        error "again"
      end)
    end]],
  [[local function walk(n)
      if n > 0 then
        coroutine.yield(n)
        for v in coroutine.wrap(function() walk(n - 1) end) do coroutine.yield(v) end
      end
    end
    while true do for _ in coroutine.wrap(function() walk(8) end) do end end]],
  [[local list = {}
    while true do
      for i = 1, 200 do list[i] = (i * 7919) % 211 end
      table.sort(list, function(a, b) return a > b end)
      local _ = ("x"):rep(200):gsub(".", function(c) return c .. c end)
    end]],
  [[while true do
      local co = coroutine.create(function(...)
        local _ <close> = setmetatable({}, { __close = function() coroutine.wrap(print) end })
        while true do coroutine.yield(...) end
      end)
      coroutine.resume(co, 1, 2, 3)
      coroutine.close(co)
      collectgarbage "step"
    end]],
  [[while true do
      xpcall(error, function(err) for i = 1, 1e3 do end return { err, debug.traceback() } end, {})
    end]],
  [[local function deep(n) return n == 0 and 0 or 1 + deep(n - 1) end
    while true do deep(5000) end]],
  [[local channel = tide.channel(2)
    for _ = 1, 3 do tide.spawn(function() while true do channel:send(1) end end) end
    while true do channel:receive() end]],
  [[while true do
      local ok = pcall(tide.timeout, 0.001, function()
        coroutine.wrap(function() for i = 1, 1e7 do end end)()
      end)
      pcall(tide.shield, 0.01, function() tide.sleep(0.002) for i = 1, 1e4 do end end)
    end]],
  [[while true do
      tide.scope(function()
        for i = 1, 3 do tide.spawn(function() for j = 1, i * 1e4 do end tide.sleep(0) end) end
      end)
    end]],
}

-- Values pass through pauses in loops, calls, metamethods and coroutines.
local CHECK = [[
  local text = {}
  local double = setmetatable({}, { __index = function(_, k)
    local n = 0
    for _ = 1, k * 50 do n = n + 2 end
    return n // 50
  end })
  for v in coroutine.wrap(function() for i = 1, 60 do coroutine.yield(double[i]) end end) do
    text[#text + 1] = select(2, pcall(function(...) return (...) * 3 end, v))
  end
  return table.concat(text, ",")
]]

local session

local function pick_stop(id)
  local at = core.clock.now() + math.random() * 0.02
  return function()
    if session:status(id) or core.clock.now() < at then return end
    session:ask { type = "interrupt", of = id }
    at = core.clock.now() + math.random() * 0.02
  end
end

local function begin(round)
  local stops = {}
  for i = 1, AT_ONCE do
    local request = { type = "eval", source = programs[(round * 3 + i) % #programs + 1] }
    if math.random() < 0.3 then request.timeout = math.random() * 0.02 + 0.001 end
    local id = session:ask(request)
    stops[id] = pick_stop(id)
  end
  return stops
end

describe("evaluations stopped at random moments", function()
  before_each(function() session = evaluations.session() end)
  after_each(function() session:close() end)

  async.it("end, and disturb nothing", function()
    math.randomseed(20261130)
    local expected = session:eval(CHECK).text
    for round = 1, ROUNDS do
      local began, stops = core.clock.now(), begin(round)
      local check = session:ask { type = "eval", source = CHECK }
      repeat
        local running = false
        for id, stop in pairs(stops) do
          stop()
          running = running or not session:status(id)
        end
        task.sleep(0)
        if core.clock.now() - began > PROMPT then
          error("round " .. round .. " does not end", 0)
        end
      until not running
      assert.equal(expected, session:finish(check).text)
      for id in pairs(stops) do
        local status = session:status(id)
        assert.is_true(status == "cancelled" or status == "timeout", status)
      end
      assert.equal(0, native.live())
      assert.is_nil(debug.gethook())
    end
  end)
end)
