-- Interrupted at random moments, many hundred times: the state stays whole, no hook is left behind,
-- and whatever runs next is right and undisturbed.
require "moontide"
local core = require "moontide.core"
core.host.watch()

local ROUNDS = 600
local now, resume = core.clock.now, core.coroutine.resume

local programs = {
  function()
    local list = {}
    while true do
      for i = 1, 50 do list[i] = { i, tostring(i), { list[i - 1] } } end
    end
  end,
  function()
    while true do
      pcall(function()
        local _ <close> = setmetatable({}, { __close = function() for _ = 1, 1e9 do end end })
        for _ = 1, 100 do string.format("%5.2f", 3.25) end
        error "again"
      end)
    end
  end,
  function()
    local function walk(n)
      if n > 0 then
        coroutine.yield(n)
        for v in coroutine.wrap(function() walk(n - 1) end) do coroutine.yield(v) end
      end
    end
    while true do
      for _ in coroutine.wrap(function() walk(8) end) do end
    end
  end,
  function()
    local list = {}
    while true do
      for i = 1, 200 do list[i] = (i * 7919) % 211 end
      table.sort(list, function(a, b) return a > b end)
      local _ = ("x"):rep(200):gsub(".", function(c) return c .. c end)
    end
  end,
  function()
    while true do
      local co = coroutine.create(function(...)
        local _ <close> = setmetatable({}, { __close = function() coroutine.wrap(print) end })
        while true do coroutine.yield(...) end
      end)
      coroutine.resume(co, 1, 2, 3)
      coroutine.close(co)
      collectgarbage("step")
    end
  end,
  function()
    while true do
      xpcall(error, function(err) return { err, debug.traceback() } end, {})
      debug.sethook(function() end, "l")
      for _ = 1, 10 do end
      debug.sethook()
    end
  end,
  function()
    local function deep(n) return n == 0 and 0 or 1 + deep(n - 1) end
    while true do deep(5000) end
  end,
  function()
    local t = setmetatable({}, {
      __index = function(_, k) return k end,
      __concat = function() return "x" end,
      __eq = function() return false end,
      __lt = function() return true end,
    })
    local u = setmetatable({}, getmetatable(t))
    while true do local _ = { t.a .. t .. u, t == u, t < u } end
  end,
}

local function checksum()
  local text = {}
  for v in coroutine.wrap(function() for i = 1, 40 do coroutine.yield(i * i) end end) do
    text[#text + 1] = select(2, pcall(tostring, v))
  end
  return #table.concat(text, ",")
end

describe("a slice interrupted at a random moment", function()
  local expected = checksum()

  it("leaves nothing behind", function()
    math.randomseed(20261130)
    for round = 1, ROUNDS do
      local program = programs[round % #programs + 1]
      local co = coroutine.create(program)
      local ok, err = resume(co, now() + math.random() * 0.002)
      assert.is_false(ok)
      assert.equal(core.coroutine.interrupted, err)
      assert.are_not.equal("external hook", debug.gethook(co)) -- its own may still be there
      assert.is_nil(debug.gethook())
      assert.is_false(core.coroutine.pending())
      local fine, sum = resume(coroutine.create(checksum), now() + 60)
      assert.is_true(fine, sum)
      assert.equal(expected, sum)
      coroutine.close(co)
    end
  end)
end)
