-- `moontide console` at a terminal: what a person types and sees. The host is a fake one, so that
-- it can be slow or silent at the moment a test wants.
local console = require "support.console_person"

local function need_more(conn, message)
  conn:send { id = message.id, type = "need_more" }
  conn:done(message.id, "incomplete")
end

local function nothing() end

-- Interrupted for the nth time the host gives in.
local function gives_in(host, n)
  local asked = 0
  host.on.interrupt = function(conn, message)
    asked = asked + 1
    conn:done(message.id)
    if asked == n then conn:done(message.of, "cancelled") end
  end
end

describe("the console at a terminal", function()
  it("shows values, and leaves at Ctrl-D", function()
    local person = console.start { ["1 + 1"] = "2" }
    person:type "1 + 1\r"
    person:see "orders> 1 %+ 1\n2\norders>$"
    person:type "\4"
    assert.equal(0, person:wait())
  end)

  it("greets with who is there", function()
    local person, host = console.start()
    person:see(("orders, process %d, ready; moontide 0.1.0"):format(host.pid))
    person:see "Ctrl%-D leaves"
  end)

  it("shows an error with its traceback, and what was printed before it", function()
    local person = console.start {
      ["f()"] = function(conn, message)
        conn:send { id = message.id, type = "out", text = "first\n" }
        conn:send { id = message.id, type = "error", message = "x:1: no",
          traceback = "x:1: no\nstack traceback:\n\tx:1: in f" }
        conn:done(message.id, "error")
      end,
    }
    person:type "f()\r"
    person:see "f%(%)\nfirst\nx:1: no\nstack traceback:\n +x:1: in f\norders>$"
  end)

  it("has colours, unless told otherwise, and no more than the prompt's", function()
    local person = console.start({ ["1"] = "one" }, { env = { NO_COLOR = false } })
    person:type "1\r"
    person:see "orders> 1\none\norders>$"
    local shown = person.process:stdout()
    assert.matches("\27[1morders>\27[0m 1", shown, 1, true)
    person = console.start({ ["1"] = "one" }, { env = { NO_COLOR = "1" } })
    person:type "1\r"
    person:see "orders> 1\none\norders>$"
    assert.is_nil(person.process:stdout():find("\27[1m", 1, true))
  end)

  it("spells out what would command the terminal", function()
    local person = console.start { evil = "a\27[2Jb\7\tc\nd\194\155e" }
    person:type "evil\r"
    person:see "a\\x1b%[2Jb\\x07   c\nd\\xc2\\x9be\norders>$"
  end)

  it("asks for the rest of what is not finished, and sends it as one", function()
    local person, host = console.start {
      ["for i = 1, 2 do"] = need_more,
      ["for i = 1, 2 do\nprint(i)"] = need_more,
      ["for i = 1, 2 do\nprint(i)\nend"] = "done",
    }
    person:type "for i = 1, 2 do\r"
    person:at_prompt ">> "
    person:type "print(i)\r"
    person:at_prompt ">> "
    person:type "end\r"
    person:see "\ndone\norders>$"
    assert.equal("for i = 1, 2 do\nprint(i)\nend", host:wait_for("eval", 3).source)
  end)

  it("gives a fresh prompt at Ctrl-C, also in the middle of what is not finished", function()
    local person, host = console.start { ["do"] = need_more, ["7"] = "seven" }
    person:type "half a line"
    person:at_prompt "orders> half a line" -- Ctrl-C drops what was not read
    person:type "\3"
    person:see "half a line\norders>$"
    person:type "do\r"
    person:at_prompt ">> "
    person:type "x"
    person:at_prompt ">> x"
    person:type "\3"
    person:at_prompt()
    person:type "7\r"
    person:see "\nseven\norders>$"
    assert.equal("7", host:wait_for("eval", 2).source)
  end)

  it("asks for an interruption at Ctrl-C, a second and a third time", function()
    for n = 1, 3 do
      local person, host = console.start { ["spin()"] = nothing }
      gives_in(host, n)
      person:type "spin()\r"
      local id = host:wait_for("eval").id
      for i = 1, n do
        person:type "\3"
        assert.equal(id, host:wait_for("interrupt", i).of)
      end
      person:at_prompt()
      person:type "\4"
      assert.equal(0, person:wait())
    end
  end)

  it("leaves with 130 at the fourth Ctrl-C, without an answer", function()
    local person, host = console.start { ["spin()"] = nothing }
    person:type "spin()\r"
    host:wait_for "eval"
    for i = 1, 3 do
      person:type "\3"
      host:wait_for("interrupt", i)
    end
    person:type "\3"
    person:see "disconnected"
    assert.equal(130, person:wait())
  end)

  it("keeps what is typed while something runs, and drops it at Ctrl-C", function()
    local person, host = console.start {
      slow = function(conn, message)
        conn.slow = message.id
      end,
      ["1"] = "one",
    }
    person:type "slow\r"
    local slow = host:wait_for "eval"
    person:type "1\r"
    host.conns[#host.conns]:done(slow.id)
    person:see "orders> 1\none\norders>$"

    gives_in(host, 1)
    person:type "slow\r"
    host:wait_for("eval", 3)
    person:type "2\r"
    person:type "\3"
    host:wait_for "interrupt"
    person:at_prompt()
    person:type "1\r"
    assert.equal("1", host:wait_for("eval", 4).source)
  end)

  it("hears a Ctrl-C however soon it comes behind a key", function()
    local person, host = console.start { slow = nothing }
    for i = 1, 100 do
      gives_in(host, 1)
      person:type "slow\r"
      host:wait_for("eval", i)
      person:type "2"
      person:type "\3"
      host:wait_for("interrupt", i)
      person:at_prompt()
    end
  end)

  it("ignores an empty line", function()
    local person, host = console.start { ["1"] = "one" }
    person:type "\r  \r"
    person:see "orders>\norders>\norders>$"
    person:type "1\r"
    assert.equal("1", host:wait_for("eval").source)
  end)

  it("edits: moves, deletes, words, characters of several bytes", function()
    local person, host = console.start()
    person:type "x = 'gruse'\27[D\27[D\27[D\127\195\188\r" -- back behind the u
    assert.equal("x = 'gr\195\188se'", host:wait_for("eval").source)
    person:type "one two three\23\23zwei\1_\5!\r" -- Ctrl-W twice, Ctrl-A, Ctrl-E
    assert.equal("_one zwei!", host:wait_for("eval", 2).source)
  end)

  it("knows characters of several bytes also where the locale has none", function()
    local person, host = console.start({ ["'\195\188'"] = "'\195\188'" },
      { env = { LC_ALL = "C", LANG = "C" } })
    person:type "'\195\188x\127'\r" -- one character is taken back, not one byte
    assert.equal("'\195\188'", host:wait_for("eval").source)
    person:see "\n'\195\188'\n"
  end)

  it("stops at Ctrl-Z with the terminal as it was, and goes on where it was", function()
    local uv = require "luv"
    local loop = require "support.loop"
    local proc = require "support.process"
    local person, host = console.start()
    local path = ("/proc/%d/task/%d/children"):format(person.process.pid, person.process.pid)
    local pid = math.tointeger(tonumber(proc.read_file(path):match "%d+"))
    local function is_stopped()
      local stat = proc.read_file(("/proc/%d/stat"):format(pid))
      return stat and stat:match "%) (%a)" == "T"
    end
    person:type "half"
    person:at_prompt "orders> half"
    person:type "\26"
    loop.wait(is_stopped, 10, "the client to stop")
    local terminal = uv.fs_readlink(("/proc/%d/fd/0"):format(pid))
    local _, modes = proc.run { program = "/usr/bin/stty", argv = { "-F", terminal, "-a" } }
    assert.matches(" icanon ", modes)
    assert.matches(" echo ", modes)
    uv.kill(pid, "sigcont")
    person:see "orders> half$"
    person:type " done\r"
    assert.equal("half done", host:wait_for("eval").source)
  end)
end)
