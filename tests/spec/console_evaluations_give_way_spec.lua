-- While an evaluation runs, everything else does, too: it is paused wherever that changes nothing.
local async = require "support.async"
local core = require "moontide.core"
local evaluations = require "support.evaluations"
local native = require "moontide.core.evaluation"
local task = require "moontide.task"

core.host.watch()

local session

-- Counts the turns of another task until the evaluation is done.
local function turns_beside(source)
  local id = session:ask { type = "eval", source = source }
  local turns = 0
  while not session:status(id) do
    turns = turns + 1
    task.sleep(0)
  end
  local reply = session:reply(id)
  assert.equal("ok", reply.status, reply.error and reply.error.message)
  return turns, reply.text
end

-- Runs `fn` as code of the application's: from a file.
local function as_application(text)
  return load(text, "@app.lua")()
end

-- 3e6 turns of a loop are 300 pauses and more, of which a machine that does other things at the
-- same time takes none away.
local MANY = 100

describe("an evaluation", function()
  before_each(function() session = evaluations.session() end)
  after_each(function()
    session:close()
    _G.app = nil
  end)

  for name, source in pairs {
    ["that counts"] = "local n = 0 for i = 1, 3e6 do n = n + 1 end return n",
    ["in a pcall"] = [[
      local n = 0
      pcall(pcall, pcall, function() for i = 1, 3e6 do n = n + 1 end end)
      return n
    ]],
    ["in a metamethod"] = [[
      local t = setmetatable({}, { __index = function(_, k)
        local n = 0
        for i = 1, 1e6 do n = n + 1 end
        return n * k
      end })
      return t[1] + t[2]
    ]],
    ["in an iterator"] = [[
      local n = 0
      for i in function(_, i) n = n + 1 i = i + 1 if i <= 1.5e6 then return i end end, nil, 0 do
        n = n + 1
      end
      return n - 1
    ]],
    ["in a coroutine"] = [[
      local co = coroutine.create(function(a)
        local n = a
        for i = 1, 1.5e6 do n = n + 1 end
        n = n + coroutine.yield(n)
        for i = 1, 1.5e6 do n = n + 1 end
        return n
      end)
      local _, half = coroutine.resume(co, 0)
      assert(half == 1.5e6 and coroutine.status(co) == "suspended")
      local _, whole = coroutine.resume(co, 0)
      assert(coroutine.status(co) == "dead")
      return whole
    ]],
    ["in a shield, with a timeout, in a scope"] = [[
      local n = 0
      tide.shield(20, tide.timeout, 20, tide.scope, function()
        for i = 1, 3e6 do n = n + 1 end
      end)
      return n
    ]],
    ["in coroutines in coroutines"] = [[
      local function nest(depth)
        if depth > 0 then return coroutine.wrap(function() return nest(depth - 1) end)() end
        local n = 0
        for i = 1, 3e6 do n = n + 1 end
        return n
      end
      return nest(20)
    ]],
    ["that generates"] = [[
      local n = 0
      for i in coroutine.wrap(function() for i = 1, 4e5 do coroutine.yield(i) end end) do
        n = n + 7
      end
      return n + 2e5
    ]],
    ["that sorts in a loop"] = [[
      local t = {}
      for i = 1, 1000 do t[i] = i end
      for _ = 1, 110 do table.sort(t, function(a, b) return a > b end) end
      return 3000000
    ]],
  } do
    async.it(name .. " gives way, and comes to the same result", function()
      local turns, text = turns_beside(source)
      assert.equal(3e6, tonumber(text))
      assert.is_true(turns > MANY, turns)
    end)
  end

  -- Two thousand instructions are no look at all; a thread looks at the time, and it may have to
  -- wait for a processor.
  async.it("that does more in C than in Lua gives way by the time", function()
    local turns, text = turns_beside [[
      local t = {}
      for i = 1, 100 do t[i] = ("x"):rep(10000) end
      for _ = 1, 500 do table.concat(t) end
      return 'done'
    ]]
    assert.equal("\"done\"", text)
    assert.is_true(turns > 20, turns)
  end)

  async.it("gives way in the tasks that it spawns", function()
    local turns = turns_beside [[
      local function spin() for i = 1, 1e6 do end end
      local a, b, c = tide.spawn(spin), tide.spawn(spin), tide.spawn(spin)
      a:join() b:join() c:join()
    ]]
    assert.is_true(turns > MANY, turns)
  end)

  async.it("raises an error in a paused coroutine where its caller is", function()
    local _, text = turns_beside [[
      local ok, err = pcall(coroutine.wrap(function()
        for i = 1, 1e6 do end
        error("late", 0)
      end))
      return err
    ]]
    assert.matches("late", text)
  end)

  async.it("runs code of the application's for a while without a pause", function()
    local seen = {}
    _G.app = { seen = seen, run = as_application [[
      return function(seen)
        seen.inside = true
        for i = 1, 5e4 do end
        seen.inside = false
        return "done"
      end
    ]] }
    local id = session:ask { type = "eval", source = [[
      for i = 1, 20 do app.run(app.seen) for i = 1, 1e5 do end end
    ]] }
    while not session:status(id) do
      assert.falsy(seen.inside, "paused in the middle of it")
      task.sleep(0)
    end
    assert.is_false(seen.inside)
  end)

  async.it("gives way in code of the application's that goes on and on", function()
    _G.app = as_application "return function() for i = 1, 3e7 do end return 1 end"
    -- It takes some 0.1 s and more, and holds the loop 20 ms at a time.
    assert.is_true(turns_beside "return app()" > 2)
  end)

  async.it("does not give way inside of the library", function()
    local turns = 0
    local t = task.root:spawn(function()
      while true do
        turns = turns + 1
        task.sleep(0)
      end
    end)
    -- A channel's books are seen by whoever runs in between.
    local reply = session:eval [[
      local channel = tide.channel(1)
      local sum = 0
      local reader = tide.spawn(function()
        for i = 1, 20000 do sum = sum + channel:receive() end
      end)
      for i = 1, 20000 do channel:send(1) end
      reader:join()
      return sum
    ]]
    t:cancel()
    assert.same({ "ok", "20000" }, { reply.status, reply.text })
    assert.is_true(turns > 0)
  end)

  async.it("has coroutines that nobody else can resume or close meanwhile", function()
    local id = session:ask { type = "eval", source = [[
      _G.app = coroutine.create(function() for i = 1, 1e7 do end return "over" end)
      return select(2, coroutine.resume(_G.app))
    ]] }
    while not _G.app do task.sleep(0) end
    assert.same({ false, "cannot resume non-suspended coroutine" }, { coroutine.resume(_G.app) })
    assert.same({ false, "cannot close a normal coroutine" }, { pcall(coroutine.close, _G.app) })
    assert.equal('"over"', session:finish(id).text)
  end)

  async.it("leaves no hook behind", function()
    session:eval "tide.spawn(function() for i = 1, 1e5 do end end)"
    assert.equal(0, native.live())
    local hooks = {}
    for i = 1, 20 do
      hooks[i] = task.root:spawn(function() return tostring((debug.gethook())) end)
    end
    for i = 1, 20 do assert.equal("nil", hooks[i]:await()) end
  end)

  async.it("may not take its hook off, also by a function kept from before", function()
    _G.app = debug.sethook
    for _, source in ipairs {
      "debug.sethook()", "app()", "app(print, 'l')", "pcall(app) app(coroutine.create(print))",
      "tide.spawn(app):await()", "coroutine.wrap(app)()", "return debug.sethook(print, '', 1)",
    } do
      local reply = session:eval(source)
      assert.equal("error", reply.status)
      assert.matches("debug.sethook is refused in an evaluation", reply.error.message)
    end
    debug.sethook(function() end, "", 1000000)
    assert.truthy(debug.gethook())
    debug.sethook()
  end)
end)
