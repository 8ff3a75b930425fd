-- Tasks that spin, await, catch and clean up, interrupted at any moment: every one of them ends,
-- and the runtime works on.
require "moontide"
local core = require "moontide.core"
local task = require "moontide.task"
core.host.watch()
task.on_uncaught(function() end) -- children that fail with their parents

local function burn(n)
  local sum = 0
  for i = 1, n do sum = sum + i % 7 end
  return sum
end

local kinds = {
  function() while true do burn(1000) end end,
  function() while true do pcall(burn, 2000) task.sleep(0) end end,
  function()
    local event = task.event("never")
    local _ <close> = setmetatable({}, { __close = function() burn(20000) end })
    burn(2e5)
    while true do pcall(function() burn(2e6) event:wait() end) end
  end,
  function()
    local channel = task.channel(1)
    local helper = task.spawn(function() while true do channel:receive() burn(5000) end end)
    for i = 1, math.huge do pcall(channel.send, channel, i) end
    helper:await()
  end,
  function()
    while true do
      task.all { task.spawn(burn, 1e5), task.spawn(burn, 1e5) }
    end
  end,
}

describe("interrupted tasks", function()
  local function round(number)
    local tasks, scope = {}, task.new_scope("round " .. number)
    for i = 1, 60 do
      tasks[i] = scope:start({
        name = number .. "/" .. i, timeout = math.random() * 0.03, detached_errors = true,
      }, kinds[i % #kinds + 1])
    end
    local give_up = core.clock.now() + 30
    repeat
      core.host.turn(false)
    until scope:count() == 0 or core.clock.now() > give_up
    for _, t in ipairs(tasks) do
      assert.truthy(t.outcome, t.name .. " has not ended")
    end
  end

  it("all end, and others run after them", function()
    math.randomseed(1130)
    task.grace = 0.1
    for number = 1, 10 do round(number) end
    local done
    task.root:spawn(function()
      task.sleep(0.001)
      done = burn(10)
    end)
    repeat
      core.host.turn(false)
    until done
    assert.equal(burn(10), done)
  end)
end)
