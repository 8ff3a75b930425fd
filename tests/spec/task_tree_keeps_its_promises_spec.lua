--- Random trees of tasks that spawn, sleep, fail, cancel each other and run late, under the
--- virtual clock. Whatever happens: no task outlives its scope, each outcome is set once, and each
--- <close> variable runs exactly once.
local async = require "support.async"
async.virtual()
local task = require "moontide.task"

local TREES = tonumber(os.getenv("MOONTIDE_TREES")) or 300

local function plant(seed)
  local random = { state = seed }
  local function pick(n)
    random.state = (random.state * 1103515245 + 12345) & 0x7fffffff
    return (random.state >> 8) % n + 1
  end
  local log = { tasks = {}, opened = 0, closed = {}, seed = seed }

  local grow

  local function cancel_someone()
    local victim = log.tasks[pick(#log.tasks)]
    if victim ~= log.tasks[1] then
      victim:cancel("by the test")
    end
  end

  local steps = {
    function() task.sleep(pick(20) / 10) end,
    function() task.sleep(0) end,
    function() error("failed by the test", 0) end,
    cancel_someone,
    function() pcall(task.sleep, pick(30) / 10) end,
    function() task.shield(pick(20) / 10, task.sleep, pick(30) / 10) end,
    function(depth) pcall(task.timeout, pick(20) / 10, grow, depth + 1) end,
    function(depth) pcall(task.scope, function() grow(depth + 1) end) end,
    function(depth)
      pcall(task.race, { function() grow(depth + 1) end, function() task.sleep(pick(9) / 10) end })
    end,
  }

  local function body(depth)
    log.opened = log.opened + 1
    local key = log.opened
    log.closed[key] = 0
    local _ <close> = setmetatable({}, { __close = function()
      log.closed[key] = log.closed[key] + 1
    end })
    for _ = 1, pick(4) do
      if depth < 4 and pick(3) == 1 then
        grow(depth + 1)
      else
        steps[pick(depth < 4 and #steps or 6)](depth)
      end
    end
  end

  function grow(depth)
    for _ = 1, pick(3) do
      local entry = { ends = 0 }
      local t = task.start({
        timeout = pick(4) == 1 and pick(30) / 10 or nil,
        detached_errors = true,
        on_end = function(t)
          entry.ends = entry.ends + 1
          entry.outcome = t.outcome
          local owner = t.scope.owner
          assert(not (owner and owner.outcome), "a task outlived its owner")
        end,
      }, body, depth)
      entry.task = t
      log.tasks[#log.tasks + 1] = t
      log[#log + 1] = entry
    end
  end

  local root = task.root:start({ detached_errors = true }, function() grow(1) end)
  log.tasks[1] = log.tasks[1] or root
  return root, log
end

local OUTCOMES = { ok = true, failed = true, timed_out = true, cancelled = true, abandoned = true }

describe("a random tree of tasks", function()
  it("keeps its promises", function()
    local seen = {}
    for seed = 1, TREES do
      local timers = async.core.clock.pending()
      local root, log = plant(seed)
      async.turn_until(function() return root.outcome ~= nil end, "tree " .. seed)
      assert.equal(0, task.counts().live, "tree " .. seed)
      assert.equal(timers, async.core.clock.pending(), "tree " .. seed)
      for _, entry in ipairs(log) do
        assert.equal(1, entry.ends, "tree " .. seed)
        assert.equal(entry.outcome, entry.task.outcome)
        assert.is_true(OUTCOMES[entry.outcome])
        seen[entry.outcome] = (seen[entry.outcome] or 0) + 1
      end
      for key, times in ipairs(log.closed) do
        assert.equal(1, times, ("tree %d, <close> %d"):format(seed, key))
      end
    end
    for outcome in pairs(OUTCOMES) do
      assert.is_true((seen[outcome] or 0) > 0, "no tree had a task that was " .. outcome)
    end
  end)
end)
