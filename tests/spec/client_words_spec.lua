-- The pure parts of the commands that speak to a running process: words, and what they say.
require "moontide"
local files = require "moontide.control_files"
local silence = require "moontide.cli.silence"
local tail = require "moontide.cli.tail"
local words = require "moontide.cli.words"

local SPEC = {
  help = "", flags = { ["--json"] = "json" }, values = { ["-f"] = "file", ["--dir"] = "dir" },
}

describe("the words of a command", function()
  it("are options in any place, and the rest in order", function()
    assert.same({ "a", "b", json = true, dir = "/x", file = "y" },
      words.read(SPEC, { "a", "--dir", "/x", "--json", "b", "-f", "y" }))
    assert.same({ dir = "a=b" }, words.read(SPEC, { "--dir=a=b" }))
    assert.same({ dir = "" }, words.read(SPEC, { "--dir=" }))
  end)

  it("are no options behind --, nor is a single -", function()
    assert.same({ "-", "--json", "-1" }, words.read(SPEC, { "-", "--", "--json", "-1" }))
  end)

  it("have durations, in which a bare number is seconds", function()
    assert.equal(1.5, words.seconds("1.5", "--timeout"))
    assert.equal(0.2, words.seconds("200ms", "--timeout"))
    assert.equal(7, words.seconds(nil, "--timeout", 7))
    local seconds, problem = words.seconds("-1", "--timeout")
    assert.is_nil(seconds)
    assert.matches("--timeout", problem, 1, true)
  end)
end)

describe("the file of a control socket", function()
  it("is named by its process, and a name is the same with each slash as _", function()
    assert.equal("orders-7.sock", files.file("orders", 7))
    assert.equal("a_b-7.sock", files.file("a/b", 7))
    assert.equal("unnamed-7.sock", files.file(nil, 7))
    assert.equal("a_b", files.title "a/b")
  end)

  it("is listed with its name and process, what else is there is not", function()
    local dir = os.tmpname()
    os.remove(dir)
    assert(require("moontide.core").files.mkdir(dir))
    local names = { "b-2.sock", "a-10.sock", "a-9.sock", "a-b-3.sock", "-4.sock", ".lock",
      ".a-5.sock", "a-9.oob", "a-x.sock", "a.sock" }
    for _, name in ipairs(names) do assert(io.open(dir .. "/" .. name, "w")):close() end
    local found = {}
    for i, file in ipairs(files.list(dir)) do
      found[i] = file.name .. " " .. file.pid
      assert.equal(("%s/%s-%d.sock"):format(dir, file.name, file.pid), file.path)
    end
    assert.same({ "a 9", "a 10", "a-b 3", "b 2" }, found)
    for _, name in ipairs(names) do os.remove(dir .. "/" .. name) end
    os.remove(dir)
    assert.same({}, files.list(dir))
  end)
end)

describe("a record", function()
  it("is a line: when, how bad, where, what, then its fields by name", function()
    assert.equal("t warn db it is slow a=1 b=true c=\"x y\" d={\"e\":[1]} f=\"\\\"\"\n",
      tail.line { time = "t", level = "warn", component = "db", msg = "it is slow", a = 1, b = true,
        c = "x y", d = { e = { 1 } }, f = "\"" })
    assert.equal("what\n", tail.line { msg = "what" })
  end)
end)

describe("what the watchdog says", function()
  local function sentence(loop, lua)
    return (silence.sentence { loop = loop, lua = lua })
  end

  it("is said when the loop has been busy for a second", function()
    local busy = { alive_ms = 2345, waits = false }
    assert.equal("the loop is stuck for 2.3 s in import, at app.lua:7; Ctrl-C asks for an "
      .. "interruption", sentence(busy, { what = "import", at = "app.lua:7" }))
    assert.matches(" s in import, in a call of C;",
      sentence(busy, { what = "import", in_c = true }), 1, true)
    assert.matches(" s in Lua;", sentence(busy, { what = "" }), 1, true)
    assert.matches(" s outside of Lua;", sentence(busy), 1, true)
  end)

  it("is not said while it waits for events, or is just busy", function()
    assert.is_nil(sentence { alive_ms = 60000, waits = true })
    assert.is_nil(sentence { alive_ms = 900, waits = false })
    assert.is_nil(sentence(nil))
  end)
end)
