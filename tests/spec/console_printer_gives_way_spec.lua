-- Who prints a large value for a task lets others have their turn, and what they do to the value
-- meanwhile does no harm.
require "moontide"
local json = require "moontide.json"
local printer = require "moontide.console.printer"

local function list(n)
  local items = {}
  for i = 1, n do items[i] = i end
  return items
end

local function names(n)
  local items = {}
  for i = 1, n do items[("name_%04d"):format(i)] = i end
  return items
end

-- fn(packed, give_way) -> how often it gives way, and what it returns.
local function counting(fn)
  return function(value, meanwhile)
    local times = 0
    local result = fn(table.pack(value), function()
      times = times + 1
      if meanwhile then meanwhile(times) end
    end)
    return times, result
  end
end

local printed = counting(function(packed, give_way)
  return printer.values(packed, nil, give_way)
end)

local converted = counting(function(packed, give_way)
  return json.encode(printer.data_of(packed, nil, give_way))
end)

describe("the printer gives way", function()
  it("between any two items", function()
    assert.is_true((printed(list(40))) >= 40)
    assert.is_true((printed(names(40))) >= 40)
    assert.is_true((printed { names(5), list(5) }) >= 12)
    assert.is_true((converted(list(40))) >= 40)
    assert.is_true((converted(names(40))) >= 40)
  end)

  it("while it looks for names", function()
    assert.is_true((printed(names(900))) >= 50 + 900 // 64)
  end)

  it("and shows what it would have shown", function()
    for _, value in ipairs { list(60), names(1200), { names(3), { { { { 1 } } } } }, "text" } do
      local _, text = printed(value)
      assert.equal(printer.values(table.pack(value)), text)
    end
  end)

  for kind, make in pairs { list = list, names = names } do
    it("while a table of " .. kind .. " is emptied, or filled", function()
      for when = 1, 60, 7 do
        for _, run in ipairs { printed, converted } do
          local value = make(200)
          local _, text = run(value, function(times)
            if times == when then for key in pairs(value) do value[key] = nil end end
          end)
          assert.is_string(text)
          value = make(200)
          _, text = run(value, function(times) value["more " .. times] = times end)
          assert.is_string(text)
        end
      end
    end)
  end
end)
