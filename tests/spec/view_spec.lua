-- Tables of text: columns that line up, numbers as people read them, nothing that moves a
-- terminal's cursor.
local text_of = require "moontide.text"
local view = require "moontide.view"

describe("a table of text", function()
  it("lines its columns up, also those with wide characters", function()
    assert.equal("name   n  why\nab     1  yes\nä€cd  12  -", view.columns({ "name", ">n", "why" },
      { { "ab", 1, "yes" }, { "ä€cd", 12 } }))
  end)

  it("has no blanks at the end of a line, and cuts what is too wide", function()
    local text = view.columns({ "a", "b" }, { { ("x"):rep(100), "" } })
    assert.equal(("x"):rep(59) .. "…", text:match "\n(.*)$")
    assert.is_nil(text:find " \n")
    assert.is_nil(text:find " $")
  end)

  it("has no line of names when there are none, and cuts nothing where that is wanted", function()
    local long = ("x"):rep(100)
    assert.equal("  a  " .. long .. "\n  b  -", view.columns({ "", "" }, { { "a", long }, { "b" } },
      view.WHOLE))
  end)

  it("shows control characters and broken UTF-8 as something harmless", function()
    assert.equal("a?[2Jb?c\u{FFFD}", view.cut("a\27[2Jb\nc\xFF", 60))
    assert.equal("ab…", view.cut("abcd", 3))
    assert.equal("äö…", view.cut("äöüß", 3))
    assert.equal("abc", view.cut("abc", 3))
  end)

  it("breaks a line between words, and within one that is too long", function()
    assert.same({ "one two", "three" }, view.wrap("one two three", 8, 3))
    assert.same({ "abcde", "fgh" }, view.wrap("abcdefgh", 5, 2))
    assert.same({ "one two", "three f…" }, view.wrap("one two three four five", 8, 2))
    assert.same({ "" }, view.wrap("", 8, 2))
  end)

  it("says how many more there are, or nothing", function()
    assert.equal("… 812 more", view.more(812))
    assert.is_nil(view.more(0))
  end)
end)

describe("numbers are shown", function()
  it("as times that fit in a few characters", function()
    for seconds, text in pairs {
      [0] = "0 ms", [0.0123] = "12 ms", [0.9996] = "1.0 s", [3.44] = "3.4 s", [59.94] = "59.9 s",
      [59.96] = "1m00s", [3599.6] = "1h00m", [86399] = "23h59m", [90000] = "1d01h",
      [-2.5] = "-2.5 s",
    } do
      assert.equal(text, view.time(seconds))
    end
    assert.equal("-", view.time(nil))
    assert.matches("^%d+d%d%dh$", view.time(math.huge))
  end)

  it("as bytes with a unit", function()
    for bytes, text in pairs {
      [0] = "0 B", [999] = "999 B", [1000] = "1.0 kB", [999949] = "999.9 kB", [999950] = "1.0 MB",
      [3400000000] = "3.4 GB", [5e15] = "5000.0 TB",
    } do
      assert.equal(text, view.bytes(bytes))
    end
    assert.equal("-", view.bytes(nil))
  end)

  it("with a plural where one belongs", function()
    assert.same({ "0 tasks", "1 task", "2 tasks" },
      { view.count(0, "task"), view.count(1, "task"), view.count(2, "task") })
  end)
end)

describe("the text of a failure", function()
  it("has the message once, whether the traceback begins with it or not", function()
    assert.equal("no\nstack traceback:\n\tx\n", text_of.failure("no", "no\nstack traceback:\n\tx"))
    assert.equal("no\nstack traceback:\n\tx\n", text_of.failure("no", "stack traceback:\n\tx\n"))
    assert.equal("no\n", text_of.failure("no"))
    assert.equal("an error without a message\n", text_of.failure())
  end)
end)
