-- ended() remembers the tasks that did not end well, with who cancelled them; those that did, only
-- for a session that asks.
local inspecting = require "support.inspecting"
local lifecycle = require "support.lifecycle"

local life, tide

local function app(main)
  life = lifecycle.new(function(library, world)
    tide = library
    world.alive = true
    main(library)
  end)
  life:advance(1)
end

local function nap() tide.sleep(1000) end

-- A session that ends when it is told.
local function new_session()
  local closers = {}
  return {
    on_close = function(_, fn) closers[#closers + 1] = fn end,
    close = function() for _, fn in ipairs(closers) do fn() end end,
  }
end

local function ended(opts, session)
  return inspecting.ask(life, "ended", session, opts)
end

describe("ended()", function()
  after_each(function() inspecting.finish(life) end)

  it("says who cancelled a task and why", function()
    app(function()
      local victim = tide.root:start({ name = "victim", kind = "job" }, nap)
      tide.root:start({ name = "culprit" }, function()
        tide.sleep(0.5)
        victim:cancel "too slow"
      end)
    end)
    local data, text = ended()
    local entry = inspecting.find(data.tasks, { name = "victim" })
    assert.equal("cancelled", entry.outcome)
    assert.equal("culprit", entry.by)
    assert.equal("cancelled: too slow", entry.error)
    assert.equal("job", entry.kind)
    assert.is_true(math.abs(entry.seconds - 0.5) < 0.01 and math.abs(entry.ago - 0.5) < 0.05)
    assert.matches("console_ended_spec.lua:%d+$", entry.site)
    assert.matches("victim +cancelled +500 ms +too slow, by culprit", text)
  end)

  it("knows failures, deadlines and what was abandoned, the latest first", function()
    app(function()
      tide.root:start({ name = "fails", detached_errors = true }, function() error "boom" end)
      tide.root:start({ name = "late", timeout = 0.2, detached_errors = true }, nap)
    end)
    life:advance(2)
    local data = ended()
    assert.same({ "late", "fails" }, { data.tasks[1].name, data.tasks[2].name })
    assert.equal("timed_out", data.tasks[1].outcome)
    assert.matches("timed out: its own timeout of 0.2 s", data.tasks[1].error)
    assert.equal("failed", data.tasks[2].outcome)
    assert.matches("boom", data.tasks[2].error)
    assert.equal(1, #ended { outcome = "failed" }.tasks)
    assert.equal(1, #ended { find = "late" }.tasks)
  end)

  it("does not remember those that ended well, until a session asks, and while it lives", function()
    app(function() end)
    local function short() tide.root:start({ name = "short" }, function() end) life:turn() end
    local session = new_session()
    short()
    assert.equal(0, #ended({ find = "short" }, session).tasks)
    short()
    assert.equal("ok", ended({ find = "short" }, session).tasks[1].outcome)
    session.close()
    short()
    assert.equal(1, #ended({ find = "short" }).tasks)
  end)

  it("leaves out helpers of the host, what was typed, and what its caller hears of", function()
    app(function()
      tide.root:spawn(function()
        pcall(tide.timeout, 0.1, nap)
        tide.race { nap, function() tide.sleep(0.1) end }
      end)
      tide.root:start({ name = "helper", kind = "internal" }, nap):cancel "not needed"
      tide.root:start({ name = "typed", kind = "console", detached_errors = true },
        function() error "a slip" end)
      tide.root:start({ name = "broken", kind = "internal", detached_errors = true },
        function() error "a fault" end)
    end)
    assert.equal(0, #ended({ find = "helper" }).tasks)
    assert.equal(0, #ended({ find = "typed" }).tasks)
    assert.equal(1, #ended({ find = "broken" }).tasks)
    assert.equal(0, #ended({ find = "tide." }).tasks)
  end)

  it("counts those that one cancellation ended, and keeps room for others", function()
    app(function()
      tide.root:start({ name = "fails", detached_errors = true }, function() error "boom" end)
      local scope = tide.task.new_scope "many"
      for i = 1, 3000 do scope:start({ name = "one " .. i }, nap) end
      tide.root:spawn(function() tide.sleep(0.5) scope:cancel "all of them" end)
    end)
    local data, text = ended { find = "one " }
    assert.equal(20, data.found)
    assert.equal(2980, data.tasks[1].more)
    assert.matches("and 2980 more", text)
    assert.equal(1, #ended { find = "fails" }.tasks)
    assert.is_true(data.total >= 3001)
  end)

  it("keeps a thousand", function()
    app(function()
      for i = 1, 1100 do
        tide.root:start({ name = "one " .. i, detached_errors = true }, function() error "no" end)
      end
    end)
    local data = ended { max = 1000 }
    assert.equal(1000, #data.tasks)
    assert.equal("one 1100", data.tasks[1].name)
    assert.equal("one 101", data.tasks[1000].name)
    assert.matches("… 950 more$", select(2, ended()))
  end)

  it("runs nothing of an error value, and keeps none", function()
    local ran, weak = false, setmetatable({}, { __mode = "k" })
    app(function()
      tide.root:start({ name = "odd", detached_errors = true }, function()
        local err = setmetatable({ message = ("x"):rep(1000) },
          { __tostring = function() ran = true return "?" end })
        weak[err] = true
        error(err)
      end)
    end)
    local entry = ended({ find = "odd" }).tasks[1]
    assert.is_true(#entry.error < 210)
    collectgarbage()
    collectgarbage()
    assert.is_nil(next(weak))
    assert.is_false(ran)
  end)

  it("refuses an outcome that is none", function()
    app(function() end)
    assert.equal("ended: unknown outcome \"canceled\"; did you mean \"cancelled\"?",
      inspecting.refused(life, "ended", nil, { outcome = "canceled" }))
  end)
end)
