-- What goes into a store's file comes out the same, byte for byte.
require "moontide"
local pack = require "moontide.http.pack"

local function random_value(depth)
  local kind = math.random(depth > 3 and 5 or 6)
  if kind == 1 then return math.random(0) end
  if kind == 2 then return math.random() * 1e300 end
  if kind == 3 then return math.random() < 0.5 end
  if kind < 6 then
    local bytes = {}
    for i = 1, math.random(0, 40) do bytes[i] = string.char(math.random(0, 255)) end
    return table.concat(bytes)
  end
  local t = {}
  for _ = 1, math.random(0, 6) do
    local key = random_value(9)
    if key == key then t[key] = random_value(depth + 1) end
  end
  return t
end

describe("pack", function()
  it("gives back what it was given", function()
    math.randomseed(4711)
    for _ = 1, 2000 do
      local value = random_value(0)
      local copy = pack.unpack(pack.pack(value))
      assert.same(value, copy)
      assert.equal(math.type(value), math.type(copy))
    end
    assert.is_nil(pack.unpack(pack.pack(nil)))
    assert.equal(math.mininteger, pack.unpack(pack.pack(math.mininteger)))
  end)

  it("refuses what is no plain value", function()
    assert.has_error(function() pack.pack(print) end, "cannot pack a function")
    local deep = {}
    deep.deep = deep
    assert.has_error(function() pack.pack(deep) end, "cannot pack a table this deep")
  end)

  it("refuses bytes that are not its own, and never reads past them", function()
    local whole = pack.pack { a = { 1, 2.5, "three", true }, b = "" }
    for cut = 0, #whole - 1 do
      assert.is_false((pcall(pack.unpack, whole:sub(1, cut))))
    end
    assert.is_false((pcall(pack.unpack, whole .. "z")))
    assert.is_false((pcall(pack.unpack, "?")))
  end)
end)
