-- What the console shows of a value.
require "moontide"
local printer = require "moontide.console.printer"

local text = printer.text

describe("the text of a value", function()
  it("tells integers from floats", function()
    local cases = {
      { 1, "1" }, { 1.0, "1.0" }, { -0.0, "-0.0" }, { 0.1, "0.1" }, { 1e100, "1e+100" },
      { 2 ^ 53, "9007199254740992.0" }, { math.maxinteger, "9223372036854775807" },
      { math.mininteger, "-9223372036854775808" }, { 1 / 0, "inf" }, { -1 / 0, "-inf" },
      { 0 / 0, "nan" }, { -(0 / 0), "nan" },
    }
    for _, case in ipairs(cases) do assert.equal(case[2], text(case[1])) end
    assert.equal("{ [-1] = 1, [0] = 1.0, [1.5] = 2, [1e+300] = 3 }",
      text { [-1] = 1, [0] = 1.0, [1.5] = 2, [1e300] = 3 })
  end)

  it("shows every control character of a string, and what is not UTF-8", function()
    assert.equal([["a\0b\x001\x1B[31m\r\n\t\"\\\x7F"]], text("a\0b\0001\27[31m\r\n\t\"\\\127"))
    assert.equal([["\xFF\xC3é\xED\xA0\x80"]], text("\xff\xc3é\xed\xa0\x80"))
    assert.equal([["\u{202E}\u{9B}\u{FEFF}"]], text("\u{202e}\u{9b}\u{feff}"))
    for code = 0, 255 do
      local char = string.char(code)
      assert.equal(char, load("return " .. text(char))())
    end
  end)

  it("cuts long strings between characters and says so", function()
    assert.equal("\"" .. ("x"):rep(200) .. "\" ... 800 more bytes", text(("x"):rep(1000)))
    assert.equal("\"x" .. ("é"):rep(99) .. "\" ... 2 more bytes", text("x" .. ("é"):rep(100)))
    assert.equal("\"" .. ("\\xBF"):rep(197) .. "\" ... 803 more bytes", text(("\xbf"):rep(1000)))
  end)

  it("sorts keys, and quotes those that are no names", function()
    assert.equal("{ 1, 2, [10] = 3, [\"a b\"] = 5, b = 4, [\"end\"] = 6, [false] = 8, [true] = 7 }",
      text { 1, 2, [10] = 3, b = 4, ["a b"] = 5, ["end"] = 6, [true] = 7, [false] = 8 })
    assert.equal("{ 1, nil, 3 }", text { 1, nil, 3 })
    assert.equal("{}", text {})
  end)

  it("marks cycles with the way up", function()
    local value = { child = { {} } }
    value.self, value.child.parent, value.child[1].top = value, value, value
    assert.equal("{\n"
      .. "  child = { { top = <cycle: 2 levels up> }, parent = <cycle: 1 level up> },\n"
      .. "  self = <cycle: itself>\n}", text(value))
  end)

  it("shows a table that is met twice, twice", function()
    local shared = { 1 }
    assert.equal("{ { 1 }, { 1 } }", text { shared, shared })
  end)

  it("ends at four levels", function()
    assert.equal("{ { { { { ... 2 more }, {} } } } }", text { { { { { 1, a = 2 }, {} } } } })
  end)

  it("shows 50 items and says how many more there are", function()
    local list = {}
    for i = 1, 1000 do list[i] = i end
    local shown = text(list)
    assert.truthy(shown:find(" 49, 50,\n  ... 950 more\n}", 1, true), shown)
    list.name = "beside the list"
    shown = text(list)
    assert.truthy(shown:find(" 49,\n  name = \"beside the list\",\n  ... 951 more\n}", 1, true),
      shown)
    local map = {}
    for i = 1, 1000 do map[("k%04d"):format(i)] = i end
    shown = text(map)
    assert.truthy(shown:find("^{\n  k0001 = 1,\n  k0002 = 2,"), shown)
    assert.truthy(shown:find("  k0050 = 50,\n  ... 950 more\n}$"), shown)
    map.k1001 = 1001
    assert.truthy(text(map):find("\n  ... 951 more\n}$"))
  end)

  it("keeps a value to 64 KiB", function()
    local function tree(depth)
      local node = {}
      for i = 1, depth > 0 and 50 or 0 do node[i] = tree(depth - 1) end
      return depth > 0 and node or ("x"):rep(100)
    end
    local shown = text(tree(3))
    assert.is_true(#shown <= 64 * 1024, #shown)
    assert.truthy(shown:find("... %d+ more"))
    assert.is_true(#text(tree(3), { bytes = 1000 }) <= 1000)
  end)

  it("names functions by where they are", function()
    assert.equal("function string.format [C]", text(string.format))
    assert.equal("function print [C]", text(print))
    local line = debug.getinfo(1, "l").currentline + 2
    assert.equal(("function %s:%d"):format(debug.getinfo(1, "S").short_src, line),
      text(function() end))
    assert.matches("^function moontide%.task%.all .*moontide/task/combine%.lua:%d+$",
      text(require("moontide.task").all))
    assert.matches("^function %[C%] 0x%x+$", text(string.gmatch("", "")))
    assert.equal("function [string \"\\x1B[31m\"]:0", text(load("", "\27[31m")))
  end)

  it("says where a coroutine stands", function()
    local function body() coroutine.yield() end
    local thread = coroutine.create(body)
    coroutine.resume(thread)
    local info = debug.getinfo(body, "S")
    assert.equal(("thread suspended %s:%d"):format(info.short_src, info.linedefined), text(thread))
    coroutine.resume(thread)
    assert.matches("^thread dead 0x", text(thread))
    assert.matches("^thread running 0x", text((coroutine.running())))
  end)

  it("names the class of an object", function()
    assert.equal("Point { x = 1 }", text(setmetatable({ x = 1 }, { __name = "Point" })))
    assert.matches("^file %(0x", text(io.stdout))
  end)
end)

describe("the text of several results", function()
  local function values(...)
    return printer.values(table.pack(...))
  end

  it("is one line of short ones", function()
    assert.equal("", values())
    assert.equal("nil", values(nil))
    assert.equal("nil\tnil", values(nil, nil))
    assert.equal("1\t\"a\"\tnil", values(1, "a", nil))
  end)

  it("has a line for each when one of them needs several", function()
    local long = {}
    for i = 1, 4 do long[i] = ("x"):rep(50) end
    assert.equal("1\n" .. text(long) .. "\n2", values(1, long, 2))
  end)

  it("is bounded", function()
    local many = values(table.unpack({}, 1, 1000))
    assert.equal(("nil\t"):rep(50) .. "... 950 more", many)
    local big = {}
    for i = 1, 50 do big[i] = ("x"):rep(200) end
    local list = {}
    for i = 1, 50 do list[i] = big end
    assert.is_true(#values(table.unpack(list)) <= 64 * 1024)
  end)
end)
