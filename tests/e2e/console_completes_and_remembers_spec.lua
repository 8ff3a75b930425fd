-- TAB asks the process what it knows; the history is a file of its user alone.
local console = require "support.console_person"
local loop = require "support.loop"
local proc = require "support.process"
local pty = require "support.pty"
local uv = require "luv"

local function completes(host, items_of)
  host.on.complete = function(conn, message)
    local from, items = items_of(message.source, message.cursor)
    conn:send { id = message.id, type = "value", from = from, items = items }
    conn:done(message.id)
  end
end

describe("TAB", function()
  it("puts the one name that there is", function()
    local person, host = console.start()
    completes(host, function() return 6, { "sleep" } end)
    person:type "tide.sl\t(1)\r"
    assert.equal("tide.sleep(1)", host:wait_for("eval").source)
    local asked = host:wait_for "complete"
    assert.same({ "tide.sl", 8 }, { asked.source, math.tointeger(asked.cursor) })
  end)

  it("puts what several have in common, then lists them", function()
    local person, host = console.start()
    completes(host, function() return 1, { "task_one", "task_two" } end)
    person:type "t\t"
    person:at_prompt "orders> task_"
    person:type "\t"
    person:see "\ntask_one  task_two\norders> task_$"
    person:type "o\r"
    assert.equal("task_o", host:wait_for("eval").source)
  end)

  it("knows the lines before, and what stands behind the cursor", function()
    local person, host = console.start {
      ["f("] = function(conn, message)
        conn:send { id = message.id, type = "need_more" }
        conn:done(message.id, "incomplete")
      end,
    }
    completes(host, function(_, cursor) return cursor - 1, { "xyz" } end)
    person:type "f(\r"
    person:at_prompt ">> "
    person:type "x)\27[D\t\r"
    assert.equal("f(\nxyz)", host:wait_for("eval", 2).source)
    assert.same({ "f(\nx)", 5 }, { host:wait_for("complete").source,
      math.tointeger(host:wait_for("complete").cursor) })
  end)

  it("does nothing where there is nothing, or no sense in the answer", function()
    for _, answer in ipairs { { 1, {} }, { 9, { "x" } }, { -3, { "x" } }, { 1.5, { "x" } } } do
      local person, host = console.start()
      completes(host, function() return answer[1], answer[2] end)
      person:type "ab\tc\r"
      assert.equal("abc", host:wait_for("eval").source)
    end
  end)

  it("waits 2 s for a process that does not answer", function()
    local person, host = console.start()
    local began = loop.now()
    person:type "ab\tc\r"
    assert.equal("abc", host:wait_for("eval").source)
    local took = loop.now() - began
    assert.is_true(took > 1.5 and took < 10, took) -- it says "hangs", it is no measurement
  end)

  it("does not wait at all after Ctrl-C", function()
    local person, host = console.start()
    person:type "ab\t"
    host:wait_for "complete"
    person:type "\3"
    person:type "c\r"
    assert.is_true(host:wait_for("eval").source:find "c$" ~= nil)
  end)
end)

describe("the history", function()
  local function again(host)
    local person = pty.start { args = { "console", "orders" },
      env = { XDG_STATE_HOME = host.dir, RUNTIME_DIRECTORY = host.dir } }
    person:at_prompt()
    return person
  end

  it("is there the next time, in a file that nobody else can read", function()
    local person, host = console.start()
    person:type "first\r"
    host:wait_for "eval"
    person:type "second\r"
    host:wait_for("eval", 2)
    person:type "\4"
    person:wait()
    local path = host.dir .. "/moontide/history"
    assert.equal("first\nsecond\n", proc.read_file(path))
    assert.equal(384, uv.fs_stat(path).mode & 511) -- 0600
    person = again(host)
    person:type "\27[A\27[A\r"
    assert.equal("first", host:wait_for("eval", 3).source)
  end)

  it("finds what is searched with Ctrl-R", function()
    local person, host = console.start()
    for i, source in ipairs { "alpha()", "beta()", "gamma()" } do
      person:type(source .. "\r")
      host:wait_for("eval", i)
    end
    person:at_prompt()
    person:type "\18lph"
    person:see "alpha"
    person:type "\r"
    assert.equal("alpha()", host:wait_for("eval", 4).source)
  end)

  it("keeps no line twice in a row, and none that begins with a space", function()
    local person, host = console.start()
    person:type "a\ra\r secret\rb\r"
    host:wait_for("eval", 4)
    person:type "\4"
    person:wait()
    assert.equal("a\nb\n", proc.read_file(host.dir .. "/moontide/history"))
  end)

  it("makes a file that others could read one that they cannot", function()
    local person, host = console.start()
    local path = host.dir .. "/moontide/history"
    person:type "a\r"
    host:wait_for "eval"
    uv.fs_chmod(path, 420) -- 0644
    person:type "b\r"
    host:wait_for("eval", 2)
    person:type "\4"
    person:wait()
    assert.equal(384, uv.fs_stat(path).mode & 511)
  end)

  it("is cut to 1000 lines when it has grown to twice as many", function()
    local person, host = console.start()
    person:type "\4"
    person:wait()
    local lines = {}
    for i = 1, 2001 do lines[i] = "line " .. i end
    local path = host.dir .. "/moontide/history"
    proc.write_file(path, table.concat(lines, "\n") .. "\n")
    person = again(host)
    person:type "\27[A\r"
    assert.equal("line 2001", host:wait_for("eval").source)
    local text = proc.read_file(path)
    assert.equal(1000, select(2, text:gsub("\n", "")))
    assert.matches("^line 1002\n", text)
  end)

  it("is not needed: without a place for it the console says so and works", function()
    local person, host = console.start(nil, { env = { XDG_STATE_HOME = "/proc/nowhere" } })
    person:see "no history is kept: [^\n]*/proc/nowhere"
    person:type "a\r"
    assert.equal("a", host:wait_for("eval").source)
  end)

  it("is not needed: where nothing more can be written the console says so once", function()
    local person, host = console.start()
    local path = host.dir .. "/moontide/history"
    uv.fs_symlink("/dev/full", path)
    person:type "a\rb\r"
    assert.equal("b", host:wait_for("eval", 2).source)
    person:see "no history is kept: "
    person:type "\4"
    person:wait()
    local _, times = person:text():gsub("no history is kept", "")
    assert.equal(1, times)
  end)
end)
