-- An interrupt does not tear the library's bookkeeping apart: it is raised once a function of the
-- script runs again. But a library function that does not return is no way out.
require "moontide"
local core = require "moontide.core"
core.host.watch()

local now, resume = core.clock.now, core.coroutine.resume

-- Two numbers that are equal whenever the "library" is not at work.
local LIBRARY = [[
  local books = { a = 0, b = 0 }
  local function keep(n)
    books.a = n
    for _ = 1, 50 do math.abs(1) end
    books.b = n
  end
  return books, keep, function() while true do end end
]]

describe("the library's own code", function()
  local books, keep, spin = load(LIBRARY, "@moontide/pretended.lua")()

  it("is not interrupted halfway", function()
    for _ = 1, 300 do
      local ok, err = resume(coroutine.create(function()
        local n = 0
        while true do
          n = n + 1
          keep(n)
        end
      end), now() + math.random() * 0.001)
      assert.is_false(ok)
      assert.equal(core.coroutine.interrupted, err)
      assert.equal(books.a, books.b)
    end
  end)

  it("is not interrupted halfway by later raises", function()
    for _ = 1, 20 do
      resume(coroutine.create(function()
        local n = 0
        while true do
          pcall(function()
            while true do
              n = n + 1
              keep(n)
            end
          end)
        end
      end), now() + 0.001)
      assert.equal(books.a, books.b)
    end
  end)

  it("is interrupted when it does not return", function()
    local deadline = now() + 0.02
    local ok, err = resume(coroutine.create(function() while true do pcall(spin) end end), deadline)
    assert.is_false(ok)
    assert.equal(core.coroutine.interrupted, err)
    assert.is_true(now() - deadline < 1) -- the three steps and their respites: some 40 ms
  end)
end)
