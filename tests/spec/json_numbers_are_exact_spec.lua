require "moontide"
local json = require "moontide.json"

describe("json numbers", function()
  local integers = {
    0, 1, -1, 8080, 123456789012345, 1234567890123456, 2 ^ 53 | 0, (2 ^ 53 | 0) + 1,
    -(2 ^ 53 | 0) - 1, 1796041825123456789, math.maxinteger, math.mininteger, math.maxinteger - 1,
  }

  it("round-trips every integer", function()
    for _, number in ipairs(integers) do
      local text = json.encode(number)
      assert.equal(("%d"):format(number), text)
      local back = json.decode(text)
      assert.equal(number, back)
      assert.equal("integer", math.type(back))
    end
  end)

  it("round-trips them inside lists and objects, beside strings that look like them", function()
    local value = {
      list = { math.maxinteger, 1, { math.mininteger } },
      ["9007199254740993"] = "9007199254740993",
      text = 'a "quoted" 9223372036854775807 \\',
    }
    assert.same(value, json.decode(json.encode(value)))
  end)

  it("decodes whole numbers as integers", function()
    assert.equal("integer", math.type(json.decode("8080")))
    assert.equal("integer", math.type(json.decode("[8080.0]")[1]))
    assert.equal("integer", math.type(json.decode('{"a":1e5}').a))
    assert.equal("float", math.type(json.decode("0.5")))
  end)

  it("keeps digits after the point out of it", function()
    assert.equal(1.2345678901234567, json.decode("1.2345678901234567"))
    assert.equal(1234567890123456.5, json.decode("1234567890123456.5"))
    assert.equal(1234567890123456e3, json.decode("1234567890123456e3"))
    assert.equal(0.12345678901234567, json.decode("[0.12345678901234567]")[1])
  end)

  it("makes a float of an integer beyond 64 bits", function()
    assert.equal(1e30, json.decode("1000000000000000000000000000000"))
    assert.equal(9223372036854775808.0, json.decode("9223372036854775808"))
  end)

  it("writes the shortest text that reads back as the same float", function()
    assert.equal("0.1", json.encode(0.1))
    assert.equal("3", json.encode(3.0))
    assert.equal("0.30000000000000004", json.encode(0.1 + 0.2))
    assert.equal("1e+300", json.encode(1e300))
    math.randomseed(20260131)
    for _ = 1, 2000 do
      local number = (math.random() - 0.5) * 10 ^ math.random(-300, 300)
      assert.equal(number, json.decode(json.encode(number)))
    end
  end)

  it("refuses to write what JSON has no form for, naming the place", function()
    assert.has_error(function() json.encode { a = { 1, 0 / 0 } } end,
      "json.encode: NaN has no form in JSON at a[2]")
    assert.has_error(function() json.encode(1 / 0) end,
      "json.encode: an infinity has no form in JSON at the top")
    assert.has_error(function() json.encode { -1 / 0 } end)
  end)

  it("refuses to read what is no number in JSON", function()
    for _, text in ipairs {
      "NaN", "nan", "Infinity", "-Infinity", "inf", "0x10", "01", "-", "+1", ".5", "1e999",
      "[1e400]", "09007199254740993", "-09007199254740993",
    } do
      local value, message = json.decode(text)
      assert.is_nil(value, text)
      assert.matches("^json%.decode: ", message)
    end
  end)
end)
