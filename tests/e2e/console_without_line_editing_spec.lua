-- `moontide console` without libedit, at a terminal that cannot do it, and without a terminal.
local console = require "support.console_person"
local fake_host = require "support.fake_host"
local proc = require "support.process"

local function piped(input, answers)
  local host = fake_host.start "orders"
  host.on.eval = function(conn, message)
    local answer = answers[message.source]
    if type(answer) == "function" then return answer(conn, message) end
    if answer then conn:send { id = message.id, type = "value", text = answer, n = 1 } end
    conn:done(message.id)
  end
  local code, out, err = proc.run { argv = { "console", "orders" }, env = host.env, manage = false,
    stdin = input }
  return code, out, err, host
end

local DUMB = { env = { TERM = "dumb" } }

local function spin() end

local function need_more(conn, message)
  conn:send { id = message.id, type = "need_more" }
  conn:done(message.id, "incomplete")
end

local function fails(conn, message)
  conn:send { id = message.id, type = "error", message = "no" }
  conn:done(message.id, "error")
end

describe("a terminal without line editing", function()
  local ways = {
    { "without the library", { MOONTIDE_LIBEDIT = "/nowhere/libedit.so" },
      "no line editing: .*/nowhere" },
    { "with a library that is another", { MOONTIDE_LIBEDIT = "libm.so.6" },
      "libedit has no el_init" },
    { "on a dumb terminal", { TERM = "dumb" } },
  }
  for _, way in ipairs(ways) do
    it("reads plain lines " .. way[1], function()
      local person, host = console.start({ ["1 + 1"] = "2", ["do"] = need_more }, { env = way[2] })
      if way[3] then person:see(way[3]) end
      person:type "1 + 1\r"
      person:see "orders> 1 %+ 1\n2\norders>$"
      person:type "do\r"
      person:at_prompt ">> "
      person:type "\3"
      person:at_prompt()
      person:type "\4"
      assert.equal(0, person:wait())
      assert.equal("do", host:wait_for("eval", 2).source)
    end)
  end

  it("has a prompt in colour", function()
    local person = console.start(nil, { env = { MOONTIDE_LIBEDIT = "/nowhere", NO_COLOR = false } })
    assert.matches("\27[1morders>\27[0m ", person.process:stdout(), 1, true)
  end)

  it("is left by a line ~., also while something runs", function()
    for _, before in ipairs { "", "spin()\r" } do
      local person, host = console.start({ ["spin()"] = spin }, DUMB)
      person:type(before)
      if before ~= "" then host:wait_for "eval" end
      person:type "~.\r"
      assert.equal(0, person:wait())
    end
  end)

  it("asks for an interruption at Ctrl-C", function()
    local person, host = console.start({ ["spin()"] = spin }, DUMB)
    host.on.interrupt = function(conn, message)
      conn:done(message.id)
      conn:done(message.of, "cancelled")
    end
    person:type "spin()\r"
    host:wait_for "eval"
    person:type "\3"
    person:at_prompt()
  end)
end)

describe("input that is no terminal", function()
  it("is run line by line, without prompts, and values are printed", function()
    local code, out, err = piped("1\nx = 2\n3", { ["1"] = "one", ["3"] = "three" })
    assert.same({ 0, "one\nthree\n", "" }, { code, out, err })
  end)

  it("may have statements of several lines", function()
    local code, out, _, host = piped("do\nend\n", { ["do"] = need_more, ["do\nend"] = "done" })
    assert.same({ 0, "done\n" }, { code, out })
    assert.equal("do\nend", host:wait_for("eval", 2).source)
  end)

  it("ends with 1 when it ends in the middle of one", function()
    local code, out, err = piped("do\n", { ["do"] = need_more })
    assert.same({ 1, "" }, { code, out })
    assert.matches("in the middle of a statement", err)
  end)

  it("ends with 1 when a line has failed, behind the last", function()
    local code, out, err = piped("bad\n1\n", { bad = fails, ["1"] = "one" })
    assert.same({ 1, "one\n", "no\n" }, { code, out, err })
  end)

  it("is ended by a line ~.", function()
    local code, _, _, host = piped("1\n~.\n2\n", {})
    assert.equal(0, code)
    host:wait_for "eval"
    assert.equal(2, #host.heard) -- with the hello
  end)

  it("leaves control characters as they are: nothing is commanded by them", function()
    local _, out = piped("1\n", { ["1"] = "a\27[2Jb" })
    assert.equal("a\27[2Jb\n", out)
  end)
end)
