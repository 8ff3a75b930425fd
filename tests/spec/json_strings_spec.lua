require "moontide"
local json = require "moontide.json"

describe("json strings", function()
  it("escapes what must be escaped, and no more", function()
    assert.equal([["plain /path"]], json.encode("plain /path"))
    assert.equal([["\"\\\n\r\t\b\f"]], json.encode("\"\\\n\r\t\b\f"))
    assert.equal([["\u0000\u001f\u007f"]], json.encode("\0\31\127"))
    assert.equal('"grün €🌊"', json.encode("grün €🌊"))
    assert.equal([[{"a\"b":1}]], json.encode { ['a"b'] = 1 })
  end)

  it("repairs what is not UTF-8", function()
    local cases = {
      ["\xff"] = "�", ["a\xc3"] = "a�", ["\xc0\xaf"] = "��", ["\xed\xa0\x80"] = "���",
      ["ü\x80€"] = "ü�€",
      ["\xf4\x90\x80\x80"] = "����", ["\xff\"\n"] = [[�\"\n]],
    }
    for given, written in pairs(cases) do
      assert.equal('"' .. written .. '"', json.encode(given))
    end
    assert.equal('{"�":1}', json.encode { ["\xfe"] = 1 })
  end)

  it("repairs a long one in linear time", function()
    local text = ("\xff"):rep(200000)
    assert.equal(200000 * 3 + 2, #json.encode(text))
  end)

  it("round-trips every byte below 128 and characters of each width", function()
    local bytes = {}
    for byte = 0, 127 do bytes[#bytes + 1] = string.char(byte) end
    local text = table.concat(bytes) .. "\u{80}\u{7FF}\u{800}\u{FFFD}\u{FFFF}\u{10000}\u{10FFFF}"
    assert.equal(text, json.decode(json.encode(text)))
  end)

  it("reads escapes", function()
    assert.equal("é🌊/", json.decode [["\u00e9\ud83c\udf0a\/"]])
  end)

  it("refuses bad text with a message", function()
    for _, text in ipairs {
      "", " ", '"', '"a', '"\\x"', '"\\ud800"', "{", '{"a"}', "{1:2}", "[1,]", "[1]x", "tRue",
      '"\1"', "'a'", '{[]:1}', '{12345678901234567:1}', '["\xff"]',
      '"\xed\xa0\x80"', "\xef\xbb\xbf1",
    } do
      local value, message = json.decode(text)
      assert.is_nil(value, text)
      assert.matches("^json%.decode: ", message)
    end
    assert.matches("byte 3 is not UTF%-8", select(2, json.decode('["\xff"]')))
  end)

  it("says where, also when the text needed marking", function()
    local _, message = json.decode('[[], 12345678901234567, oops]')
    assert.matches("character 25", message)
  end)

  it("raises for what is no text", function()
    assert.has_error(function() json.decode(nil) end, "json.decode: a string is wanted, not a nil")
  end)
end)
